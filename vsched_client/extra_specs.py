# SPDX-License-Identifier: Apache-2.0

"""Extra specs of flavors, and the differences between two sets of them."""

from collections.abc import Mapping
import typing as ty

#: Prefixes of the extra specs of a reservation, and of its claim.
RESERVATION = 'vsched:'
CLAIM = ('resources_VSCHED:CUSTOM_VSCHED_', 'trait_VSCHED:CUSTOM_VSCHED_')


class Change(ty.TypedDict):
    """A difference between two sets of extra specs.

    ``before`` and ``after`` are None where the extra spec is missing.
    """

    extra_spec: str
    before: str | None
    after: str | None


def ours(extra_specs: Mapping[str, str]) -> bool:
    """Return whether a flavor has extra specs of vsched."""
    return any(name.startswith((RESERVATION, *CLAIM)) for name in extra_specs)


def changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> list[Change]:
    """Return the differences between two sets, in the order to make them.

    Extra specs are added before others are removed, and a reservation is
    removed before its claim: a flavor that claims too much for a moment
    oversells nothing.
    """
    found: list[Change] = [
        {
            'extra_spec': name,
            'before': before.get(name),
            'after': after.get(name),
        }
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    ]
    return sorted(found, key=_order)


def _order(change: Change) -> tuple[bool, bool, bool, str]:
    name = change['extra_spec']
    return (
        change['after'] is None,
        not name.startswith(RESERVATION),
        not name.startswith(CLAIM),
        name,
    )
