# SPDX-License-Identifier: Apache-2.0

"""The effective extra specs of an instance with an override.

Shared by agents and evaluations, so that an evaluation of an override has
the result that the agent would have.
"""

from collections.abc import Mapping

from vsched_lib.contract import extra_specs
from vsched_lib.model import reservation


def effective(
    specs: Mapping[str, str], override: Mapping[str, str]
) -> dict[str, str]:
    """Return a flavor's extra specs, replaced by those of an override.

    :param specs: by full name.
    :param override: text by key of :data:`extra_specs.OVERRIDABLE`; others
        are left out.
    """
    return {
        **specs,
        **{
            extra_specs.TABLE[key].name: override[key]
            for key in extra_specs.OVERRIDABLE
            if key in override
        },
    }


def merged(
    specs: Mapping[str, str],
    reserved: reservation.Reservation,
    override: Mapping[str, str],
) -> dict[str, str]:
    """Return the same with the override's reservation.

    The flavor's own reservation may be missing or incompatible.
    """
    backend = extra_specs.TABLE['backend'].name
    return effective(
        {
            **{name: text for name, text in specs.items() if name != backend},
            **extra_specs.render(reserved),
        },
        override,
    )
