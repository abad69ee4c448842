# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Validators of the extra specs ``vsched:*``, for nova-api.

Nova applies them from microversion 2.86 on, to each key by itself; rules
between keys are checked by the filters and by the agent.
"""

import dataclasses
import typing as ty

from nova.api.validation.extra_specs import base
from nova import exception

from vsched_lib.contract import extra_specs


@dataclasses.dataclass
class _Validator(base.ExtraSpecValidator):
    """Takes what the agent's parser takes, which is stricter than Nova.

    Nova's own forms have no decimals, and read numbers that no agent would.
    """

    def validate(self, name: str, value: ty.Any) -> None:
        """Go on only if the agent will understand the value.

        :raises exception.ValidationError: saying what is accepted.
        """
        spec = extra_specs.TABLE[name.removeprefix(extra_specs.PREFIX)]
        try:
            spec.parse(value)
        except ValueError as problem:
            raise exception.ValidationError(
                'Validation failed; %s: %s' % (name, problem)) from None


def register() -> list[base.ExtraSpecValidator]:
    """One validator for each key of the table."""
    return [_Validator(
        name=spec.name, description=spec.help, value=_value(spec))
        for spec in extra_specs.TABLE.values()]


def _value(spec: extra_specs.ExtraSpec) -> dict[str, ty.Any]:
    """What Nova shows to those who ask what a key takes."""
    if spec.type is extra_specs.Type.INTEGER:
        return {'type': int, 'min': spec.minimum, 'max': spec.maximum,
                'description': spec.accepted}
    if spec.type is extra_specs.Type.CHOICE:
        return {'type': str, 'enum': list(spec.choices),
                'description': spec.accepted}
    kind = bool if spec.type is extra_specs.Type.BOOLEAN else str
    return {'type': kind, 'description': spec.accepted}
