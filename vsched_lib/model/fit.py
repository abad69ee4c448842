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

"""Can this host keep what that flavor promises, and if not, why?

One answer for the scheduler's filters, for evaluations and for the agent.
It has two halves: what the flavor takes of this kind of host, which only
changes when the host is measured anew (:func:`need`), and whether that much
is left (:func:`judge`), which is one comparison.

The agent's admission asks the same of the same facts, and adds what only it
can know: on which CPUs vCPUs are pinned, what ``gfb`` says of all claims
together, and what the kernel says. So nothing here is stricter than the agent,
and where it is more generous the agent still refuses.
"""

from collections.abc import Mapping
import dataclasses
import enum
import math

from vsched_lib.model import certificates
from vsched_lib.model import error
from vsched_lib.model import overhead
from vsched_lib.model import reservation


class Cause(enum.StrEnum):
    """What a host lacks."""

    BACKEND = 'backend'
    RESERVATION = 'reservation'
    ERROR = 'error'
    OVERHEAD = 'overhead'
    CAPACITY = 'capacity'


@dataclasses.dataclass(frozen=True, slots=True)
class Ask:
    """What one instance asks of whichever host it gets.

    :param vcpus: how many it has.
    :param promise: for each of them; None when there is no reservation.
    :param bound_ppm: what may be missing in one second of a hundred, in ppm
        of the promise; None when anything may.
    :param rates: the I/O it is expected to do.
    :param charged: the host's work on that comes out of the reservation
        (True), on top of it (False), or is left out (None).
    :param workload_class: what it mostly does, if the flavor says.
    """

    vcpus: int
    promise: reservation.Reservation | None = None
    bound_ppm: int | None = None
    rates: overhead.Rates = overhead.Rates()
    charged: bool | None = None
    workload_class: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """What a host makes of what it has measured.

    :param most_margin_ppm: the largest margin, of the runtime.
    :param most_overhead_ppm: the largest part of a reservation that may go
        to the host's work on its I/O.
    :param refuse_unpriced: whether I/O that nobody has measured the cost of
        is refused; else it is taken to cost nothing.
    """

    most_margin_ppm: int = 250_000
    most_overhead_ppm: int = 500_000
    refuse_unpriced: bool = False


DEFAULT = Policy()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Host:
    """What is known of a host, but for what is in use there.

    :param capacity_mcpu: what reservations may use in total.
    :param backends: that can be used.
    :param certified: by backend and period in microseconds, the errors
        measured under contention.
    :param prices: of I/O; None when they were not measured.
    :param policy: its agent's own.
    """

    cpus: int
    tick_us: int
    capacity_mcpu: int
    backends: frozenset[str]
    certified: Mapping[tuple[str, int], certificates.Certificate] = (
        dataclasses.field(default_factory=dict))
    prices: overhead.Fit | None = None
    policy: Policy = DEFAULT


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that speaks against a host.

    :param detail: with the figures.
    :param unknown: it was not measured; nothing is known to be wrong.
    """

    cause: Cause
    detail: str
    unknown: bool = False

    @property
    def tolerated(self) -> bool:
        """Whether the host takes the instance nevertheless.

        Errors that were not measured it does not promise to keep; of I/O
        that has no price it may say so.
        """
        return self.unknown and self.cause is Cause.OVERHEAD


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """What a flavor takes of one host.

    :param backend: that would hold the reservation; None without one.
    :param runtime_us: what each vCPU is given in every period, the margin
        included; 0 without a reservation.
    :param guest_mcpu: likewise all of them.
    :param margin_ppm: of the runtime, for the measured errors.
    :param overhead_mcpu: the host's work on the I/O; None when the host was
        not measured.
    :param demand_mcpu: what it takes of the host's capacity: 0 when the
        backend guarantees nothing.
    :param error_ppm: by how much one second of a hundred falls short there
        at this share, before the margin; None when that is not known.
    """

    backend: reservation.Backend | None = None
    runtime_us: int = 0
    guest_mcpu: int = 0
    margin_ppm: int = 0
    overhead_mcpu: int | None = None
    demand_mcpu: int = 0
    error_ppm: int | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def refusal(self) -> Problem | None:
        """The first thing for which the host does not take the instance."""
        for problem in self.problems:
            if not problem.tolerated:
                return problem
        return None


def need(ask: Ask, host: Host) -> Need:
    """What an instance takes of this host.

    The first backend that does counts, as it does for the agent; when none
    does, the problems are those of the first one that the host has.
    """
    if ask.promise is None:
        return Need(overhead_mcpu=_overhead_mcpu(ask, host))
    named = ask.promise.backend
    wanted = (named,) if named is not None else _BY_ITSELF
    usable = [name for name in wanted if name in host.backends]
    if not usable:
        own_mcpu = ask.promise.bandwidth_mcpu(ask.vcpus)
        return Need(
            runtime_us=ask.promise.runtime_us, guest_mcpu=own_mcpu,
            overhead_mcpu=_overhead_mcpu(ask, host), demand_mcpu=own_mcpu,
            problems=(Problem(
                Cause.BACKEND, 'needs backend %s; the host can use %s' % (
                    ' or '.join(wanted),
                    ', '.join(sorted(host.backends)) or 'none')),))
    first = need_by(usable[0], ask, ask.promise, host)
    if first.refusal is None:
        return first
    for name in usable[1:]:
        found = need_by(name, ask, ask.promise, host)
        if found.refusal is None:
            return found
    return first


#: What a reservation that names no backend may be held by.
_BY_ITSELF = tuple(
    name for name in reservation.Backend if name in reservation.GUARANTEES)


def need_by(name: reservation.Backend, ask: Ask,
            promise: reservation.Reservation, host: Host) -> Need:
    """What an instance takes of this host when a certain backend holds it.

    :param promise: what is asked, of any backend.
    """
    cost = _overhead_mcpu(ask, host)
    problems = [Problem(Cause.RESERVATION, detail)
                for detail in promise.problems(name, host.tick_us)]
    runtime_us, margin_ppm, error_ppm = promise.runtime_us, 0, None
    certificate = host.certified.get((name, promise.period_us))
    if certificate is not None:
        # In whole ppm, and down.
        share_ppm = int(promise.utilisation * error.PPM)
        error_ppm = certificate.lower_ppm(share_ppm)
    if ask.bound_ppm is not None:
        inflated_us = None
        if error_ppm is not None:
            margin = error.margin_ppm(error_ppm, ask.bound_ppm)
            if margin is not None and margin <= host.policy.most_margin_ppm:
                margin_ppm = margin
                inflated_us = error.inflated_us(
                    runtime_us, promise.period_us, margin)
        if inflated_us is None:
            problems.append(_uncertain(
                name, promise, ask.bound_ppm, certificate, error_ppm))
        else:
            runtime_us = inflated_us
    guest = (promise if runtime_us == promise.runtime_us
             else dataclasses.replace(promise, runtime_us=runtime_us)
             ).bandwidth(ask.vcpus)
    own_mcpu = math.ceil(guest * reservation.MCPU_PER_CPU)
    demand_mcpu = own_mcpu
    if ask.charged is not None:
        if cost is None:
            problems.append(Problem(
                Cause.OVERHEAD, 'what I/O costs there was not measured',
                unknown=not host.policy.refuse_unpriced))
        else:
            demand_mcpu = overhead.demand_mcpu(guest, cost, ask.charged)
            problems.extend(_too_dear(
                ask.charged, cost, own_mcpu, host.policy))
    return Need(
        name, runtime_us, own_mcpu, margin_ppm, cost,
        demand_mcpu if name in reservation.GUARANTEES else 0, error_ppm,
        tuple(problems))


def _overhead_mcpu(ask: Ask, host: Host) -> int | None:
    if ask.rates == _NO_IO:
        return 0
    return None if host.prices is None else overhead.overhead_mcpu(
        ask.rates, host.prices)


_NO_IO = overhead.Rates()


def _too_dear(charged: bool, cost_mcpu: int, own_mcpu: int,
              policy: Policy) -> list[Problem]:
    if not charged or cost_mcpu * error.PPM <= (
            own_mcpu * policy.most_overhead_ppm):
        return []
    return [Problem(
        Cause.OVERHEAD, 'its I/O would cost %d of its %d mcpu there, more '
        'than %g %%' % (cost_mcpu, own_mcpu,
                        policy.most_overhead_ppm / 10_000))]


def _uncertain(name: str, promise: reservation.Reservation, bound_ppm: int,
               certificate: certificates.Certificate | None,
               error_ppm: int | None) -> Problem:
    share_pct = float(promise.utilisation * 100)
    if certificate is None:
        return Problem(
            Cause.ERROR, 'backend %s was not measured under contention at a '
            'period of %d us' % (name, promise.period_us), unknown=True)
    if error_ppm is None:
        return Problem(
            Cause.ERROR, 'backend %s has too few samples near a share of '
            '%g %%' % (name, share_pct), unknown=True)
    return Problem(
        Cause.ERROR, 'backend %s falls short by %g %% in one second of a '
        'hundred at a share of %g %%; %g %% may be missing, and no margin '
        'that is allowed makes up for it' % (
            name, -error_ppm / 10_000, share_pct, bound_ppm / 10_000))


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a host can take some instances.

    :param free_mcpu: what is left there; below 0 when it is overfull.
    :param instances: how many were asked for.
    """

    need: Need
    capacity_mcpu: int
    free_mcpu: int
    instances: int = 1

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that speaks against the host."""
        wanted_mcpu = self.need.demand_mcpu * self.instances
        if not lacks(self.need, self.free_mcpu, self.instances):
            return self.need.problems
        return (*self.need.problems, shortage(
            wanted_mcpu, self.free_mcpu, self.capacity_mcpu))

    @property
    def fits(self) -> bool:
        """Whether nothing does for which the host refuses an instance."""
        return self.need.refusal is None and not lacks(
            self.need, self.free_mcpu, self.instances)

    @property
    def room(self) -> int | None:
        """How many such instances fit; None when capacity is no limit."""
        if self.need.refusal is not None:
            return 0
        if not self.need.demand_mcpu:
            return None
        return max(0, self.free_mcpu // self.need.demand_mcpu)


def lacks(wanted: Need, free_mcpu: int, instances: int = 1) -> bool:
    """Whether a host has too little left.

    An instance that takes nothing fits into a host that is overfull.
    """
    return 0 < wanted.demand_mcpu * instances > free_mcpu


def shortage(wanted_mcpu: int, free_mcpu: int, capacity_mcpu: int) -> Problem:
    """The problem of a host that has too little left, in words."""
    return Problem(Cause.CAPACITY, '%d mcpu needed, %d of %d mcpu free' % (
        wanted_mcpu, free_mcpu, capacity_mcpu))


def judge(ask: Ask, host: Host, admitted_mcpu: int,
          instances: int = 1) -> Verdict:
    """Whether a host can take some instances.

    :param admitted_mcpu: what is in use there.
    :param instances: all of them on this host.
    """
    return Verdict(need(ask, host), host.capacity_mcpu,
                   host.capacity_mcpu - admitted_mcpu, instances)
