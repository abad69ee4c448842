# SPDX-License-Identifier: Apache-2.0

"""Filter the hosts of a request, with the reasons of refusals.

Arithmetic on memory, once for each host: no I/O, no waiting, no iteration
over the instances of a host. ``state`` is a ``HostState`` of Nova, which
makes new ones for each request.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import typing as ty

from nova_filters import cache
from nova_filters import flavor_request
from nova_filters import hosts
from vsched_lib.model import fit
from vsched_lib.model import room

#: How many refused hosts of each cause are named in the log.
NAMED = 3

Judge = Callable[
    [flavor_request.FlavorRequest, hosts.Host, ty.Any], fit.Problem | None
]


class Rules(ty.NamedTuple):
    """What one filter requires, and what it does with unknown hosts.

    :param stale: whether hosts pass when what is known is stale.
    :param missing: whether hosts pass when nothing is known.
    """

    judge: Judge
    stale: bool
    missing: bool


class Refusals:
    """The hosts that one filter refused, for the log."""

    def __init__(self) -> None:
        self._by_cause: dict[str, list[tuple[str, str]]] = {}
        self.count = 0

    def add(self, name: str, cause: str, detail: str) -> None:
        """Add one host."""
        self.count += 1
        self._by_cause.setdefault(cause, []).append((name, detail))

    def __str__(self) -> str:
        return '; '.join(
            '%s=%d (%s%s)'
            % (
                cause,
                len(found),
                ', '.join('%s: %s' % one for one in found[:NAMED]),
                ', ...' if len(found) > NAMED else '',
            )
            for cause, found in sorted(self._by_cause.items())
        )


MISSING = 'missing'
STALE = 'stale'


def filter_hosts(
    states: Iterable[ty.Any],
    request: flavor_request.FlavorRequest,
    known: cache.Known,
    stale: bool,
    rules: Rules,
) -> tuple[list[ty.Any], Refusals]:
    """Return the hosts that pass.

    :param stale: whether what is known of all of them is stale.
    :returns: those that pass, in their order, and why others do not.
    """
    passed: list[ty.Any] = []
    refusals = Refusals()
    if stale:
        if rules.stale:
            return list(states), refusals
        for state in states:
            refusals.add(state.host, STALE, 'the service was not reached')
        return passed, refusals
    by_name, down = known.hosts.by_name, known.hosts.down
    judge = rules.judge
    for state in states:
        host = find(by_name, state)
        if host is None:
            if rules.missing:
                passed.append(state)
            else:
                refusals.add(state.host, MISSING, 'it has no agent')
            continue
        if host.reported.name in down:
            if rules.stale:
                passed.append(state)
            else:
                refusals.add(state.host, STALE, 'its agent does not report')
            continue
        problem = judge(request, host, state)
        if problem is None or (problem.unknown and rules.missing):
            passed.append(state)
        else:
            refusals.add(state.host, problem.cause, problem.detail)
    return passed, refusals


def find(
    by_name: Mapping[str, hosts.Host], state: ty.Any
) -> hosts.Host | None:
    """Return what is known of Nova's host, or None.

    Its agent has the name of the compute service or of the hypervisor.
    """
    found = by_name.get(state.host)
    return by_name.get(state.nodename) if found is None else found


def taken(state: ty.Any) -> int:
    """Return how many instances of this request the host got already.

    Placement's usage and the agent's reports do not have them before the
    request is over; the state counts them.
    """
    before = state.__dict__.setdefault('vsched_before', state.num_instances)
    return int(state.num_instances - before)


_HOLDING = (fit.Cause.BACKEND, fit.Cause.RESERVATION)


def reservation(
    request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
) -> fit.Problem | None:
    """Return why the host cannot hold the reservation, or None.

    What is known of a host's free capacity is some seconds old. If the
    flavor claims in placement all that it needs of this host, placement's
    answer to this request counts instead: there the capacity of a deleted
    server is free at once, and two requests cannot get the same.
    """
    need = host.need(request)
    for problem in need.problems:
        if problem.cause in _HOLDING:
            return problem
    demand_mcpu = need.demand_mcpu
    if demand_mcpu <= request.claimed_mcpu and state.allocation_candidates:
        if demand_mcpu <= host.capacity_mcpu:
            return None
        return room.shortage(
            demand_mcpu, host.capacity_mcpu, host.capacity_mcpu
        )
    more = 1 + taken(state)
    if room.lacks(need, host.free_mcpu, more):
        return room.shortage(
            need.demand_mcpu * more, host.free_mcpu, host.capacity_mcpu
        )
    return None


def allocation_error(
    request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
) -> fit.Problem | None:
    """Return why the host may exceed the bound on errors, or None."""
    for problem in host.need(request).problems:
        if problem.cause is fit.Cause.ERROR:
            return problem
    return None


def io_overhead(
    request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
) -> fit.Problem | None:
    """Return why the flavor's I/O costs the host too much, or None."""
    for problem in host.need(request).problems:
        if problem.cause is fit.Cause.OVERHEAD:
            return problem
    return None
