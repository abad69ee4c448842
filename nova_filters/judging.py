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

"""Which hosts of a request stay, and why the others do not.

Arithmetic on memory, once for each host: nothing here reads, waits or walks
over the instances of a host. ``state`` is one of Nova's ``HostState``; Nova
makes them anew for each request.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import typing as ty

from nova_filters import asking
from nova_filters import cache
from nova_filters import hosts
from vsched_lib.model import fit
from vsched_lib.model import room

#: How many refused hosts of each cause are named in the log.
NAMED = 3

Judge = Callable[[asking.Question, hosts.Host, ty.Any], fit.Problem | None]


class Rules(ty.NamedTuple):
    """What one filter asks, and what it makes of what is not known.

    :param stale: whether a host may be used when what is known is old.
    :param missing: whether it may when nothing is known.
    """

    judge: Judge
    stale: bool
    missing: bool


class Refusals:
    """What is said in the log of the hosts that one filter refused."""

    def __init__(self) -> None:
        self._by_cause: dict[str, list[tuple[str, str]]] = {}
        self.count = 0

    def add(self, name: str, cause: str, detail: str) -> None:
        """Count one host."""
        self.count += 1
        self._by_cause.setdefault(cause, []).append((name, detail))

    def __str__(self) -> str:
        return '; '.join('%s=%d (%s%s)' % (
            cause, len(found), ', '.join(
                '%s: %s' % one for one in found[:NAMED]),
            ', ...' if len(found) > NAMED else '')
            for cause, found in sorted(self._by_cause.items()))


MISSING = 'missing'
STALE = 'stale'


def sift(states: Iterable[ty.Any], question: asking.Question,
         known: cache.Known, stale: bool, rules: Rules,
         ) -> tuple[list[ty.Any], Refusals]:
    """Which hosts pass.

    :param stale: what is known of all of them is old.
    :returns: those that do, in their order, and what is wrong with the
        others.
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
        if host.told.name in down:
            if rules.stale:
                passed.append(state)
            else:
                refusals.add(state.host, STALE, 'its agent does not report')
            continue
        problem = judge(question, host, state)
        if problem is None or (problem.unknown and rules.missing):
            passed.append(state)
        else:
            refusals.add(state.host, problem.cause, problem.detail)
    return passed, refusals


def find(by_name: Mapping[str, hosts.Host],
         state: ty.Any) -> hosts.Host | None:
    """What is known of Nova's host.

    Its agent is called as the compute service is, or as the hypervisor is.
    """
    found = by_name.get(state.host)
    return by_name.get(state.nodename) if found is None else found


def taken(state: ty.Any) -> int:
    """Instances of this request that the host was given already.

    Neither placement's usage nor the agent's reports say so before the
    request is over, but the state counts them.
    """
    before = state.__dict__.setdefault('vsched_before', state.num_instances)
    return int(state.num_instances - before)


_HOLDING = (fit.Cause.BACKEND, fit.Cause.RESERVATION)


def reservation(question: asking.Question, host: hosts.Host,
                state: ty.Any) -> fit.Problem | None:
    """Whether the host can hold the reservation, and has the room."""
    need = host.need(question)
    for problem in need.problems:
        if problem.cause in _HOLDING:
            return problem
    more = 1 + taken(state)
    if room.lacks(need, host.free_mcpu, more):
        return room.shortage(
            need.demand_mcpu * more, host.free_mcpu, host.capacity_mcpu)
    return None


def allocation_error(question: asking.Question, host: hosts.Host,
                     state: ty.Any) -> fit.Problem | None:
    """Whether the host has shown that its errors keep within the bound."""
    for problem in host.need(question).problems:
        if problem.cause is fit.Cause.ERROR:
            return problem
    return None


def io_overhead(question: asking.Question, host: hosts.Host,
                state: ty.Any) -> fit.Problem | None:
    """Whether the host does the I/O for what the flavor can pay."""
    for problem in host.need(question).problems:
        if problem.cause is fit.Cause.OVERHEAD:
            return problem
    return None
