# SPDX-License-Identifier: Apache-2.0

"""The extra specs by which a flavor reserves, and claims as much.

The keys of our namespace are the reservation; those of our request group
claim it in placement. The second are derived from the first.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses

from vsched_lib.contract import extra_specs
from vsched_lib.contract import placement
from vsched_lib.model import fit

#: Nova requires it with a request group; any value is fine.
GROUP_POLICY = 'group_policy'
_NO_POLICY = 'none'


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """Changes of a set of extra specs.

    :param added: keys that are missing or have another value.
    :param removed: keys to remove.
    """

    added: Mapping[str, str]
    removed: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


#: Returns the worst cost of an instance's I/O on any host, in mcpu.
IoPrice = Callable[[fit.Ask], int]


def _free(ask: fit.Ask) -> int:
    return 0


def claiming(
    vcpus: int, specs: Mapping[str, str], io_mcpu: IoPrice = _free
) -> Change:
    """Return the changes with which a flavor claims what it reserves.

    :param specs: all that it has.
    :param io_mcpu: returns the cost of I/O that comes on top of the
        reservation.
    :raises errors.InvalidExtraSpecs: when its reservation is invalid.
    """
    ask = extra_specs.parse(specs).ask(vcpus)
    desired = dict(
        placement.request(
            ask.promise,
            vcpus,
            ask.bound_ppm,
            io_mcpu(ask) if on_top(ask) else 0,
        )
    )
    removed = {
        name for name in specs if placement.ours(name) and name not in desired
    }
    if desired:
        # No other group can be on our provider, so "isolate" is equivalent.
        desired[GROUP_POLICY] = specs.get(GROUP_POLICY, _NO_POLICY)
    elif (
        removed
        and specs.get(GROUP_POLICY) == _NO_POLICY
        and not any(_grouped(name) for name in specs.keys() - removed)
    ):
        removed.add(GROUP_POLICY)
    return Change(
        {
            name: text
            for name, text in desired.items()
            if specs.get(name) != text
        },
        frozenset(removed),
    )


def on_top(ask: fit.Ask) -> bool:
    """Return whether the cost of I/O comes on top of the reservation."""
    return ask.charged is False and any(dataclasses.astuple(ask.rates))


def unclaimed(vcpus: int, specs: Mapping[str, str]) -> str | None:
    """Return which requirement placement cannot check, or None.

    :raises errors.InvalidExtraSpecs: when its reservation is invalid.
    """
    ask = extra_specs.parse(specs).ask(vcpus)
    if (
        ask.promise is None
        or ask.bound_ppm is None
        or not placement.claim_mcpu(ask.promise, vcpus)
        or placement.certifying(ask.promise, ask.bound_ppm)
    ):
        return None
    return (
        'max_alloc_error_pct %g is below %g, the least that hosts are '
        'certified for in placement: only the filters check it'
        % (ask.bound_ppm / 10_000, min(placement.BOUNDS_PPM) / 10_000)
    )


def changed(
    vcpus: int,
    specs: Mapping[str, str],
    asked: Mapping[str, str | None],
    io_mcpu: IoPrice = _free,
) -> Change:
    """Return the changes that set keys of our namespace, and the claim.

    :param asked: full names; None removes a key.
    :raises errors.InvalidExtraSpecs: when the result is invalid.
    """
    after = {
        name: text
        for name, text in specs.items()
        if asked.get(name, text) is not None
    }
    after.update(
        (name, text) for name, text in asked.items() if text is not None
    )
    claim = claiming(vcpus, after, io_mcpu)
    return Change(
        {
            **{
                name: text
                for name, text in asked.items()
                if text is not None and specs.get(name) != text
            },
            **claim.added,
        },
        frozenset(
            name
            for name, text in asked.items()
            if text is None and name in specs
        )
        | claim.removed,
    )


def _grouped(name: str) -> bool:
    kind, colon, _ = name.partition(':')
    return (
        bool(colon)
        and kind.startswith(('resources', 'trait'))
        and (kind not in ('resources', 'trait'))
    )
