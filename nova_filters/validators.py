# SPDX-License-Identifier: Apache-2.0

"""Validators of the extra specs ``vsched:*``, for nova-api.

Nova applies them from microversion 2.86 on, to each key by itself; rules
between keys are checked by the filters and by the agent.
"""

import dataclasses
import typing as ty

from nova.api.validation.extra_specs import base
from nova import exception

from vsched_lib.contract import extra_specs
from vsched_lib.contract import spec_values


@dataclasses.dataclass
class _Validator(base.ExtraSpecValidator):
    """Accepts what the agent's parser accepts.

    Nova's own types have no decimals, and accept numbers that the agent
    refuses.
    """

    def validate(self, name: str, value: ty.Any) -> None:
        """Check that the agent accepts the value.

        :raises exception.ValidationError: with what is accepted.
        """
        spec = extra_specs.TABLE[name.removeprefix(spec_values.PREFIX)]
        try:
            spec.parse(value)
        except ValueError as problem:
            raise exception.ValidationError(
                'Validation failed; %s: %s' % (name, problem)
            ) from None


def register() -> list[base.ExtraSpecValidator]:
    """Return one validator for each key of the table."""
    return [
        _Validator(name=spec.name, description=spec.help, value=_value(spec))
        for spec in extra_specs.TABLE.values()
    ]


def _value(spec: spec_values.ExtraSpec) -> dict[str, ty.Any]:
    """Return what Nova shows about the values of a key."""
    if spec.type is spec_values.Type.INTEGER:
        return {
            'type': int,
            'min': spec.minimum,
            'max': spec.maximum,
            'description': spec.accepted,
        }
    if spec.type is spec_values.Type.CHOICE:
        return {
            'type': str,
            'enum': list(spec.available),
            'description': spec.accepted,
        }
    kind = bool if spec.type is spec_values.Type.BOOLEAN else str
    return {'type': kind, 'description': spec.accepted}
