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
changes when the host is measured anew, is here; whether that much is left,
which is one comparison, is in :mod:`vsched_lib.model.room`.

The agent's admission asks the same of the same facts, and adds what only it
can know: on which CPUs vCPUs are pinned, what ``gfb`` says of all claims
together, and what the kernel says. So nothing here is stricter than the agent,
and where it is more generous the agent still refuses.
"""

from collections.abc import Mapping
import dataclasses
import enum
import typing as ty

from vsched_lib.model import certificates
from vsched_lib.model import error
from vsched_lib.model import overhead
from vsched_lib.model import reservation
from vsched_lib.model import sharing


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
    #: The prices made ready, by who makes the host and not by who asks.
    tariff: overhead.Tariff | None = dataclasses.field(
        init=False, default=None)

    def __post_init__(self) -> None:
        for name, value in (
                ('backends', sharing.one(self.backends)),
                ('policy', sharing.one(self.policy)),
                ('certified', {sharing.one(kind): known for kind, known in
                               self.certified.items()})):
            object.__setattr__(self, name, value)
        if self.prices is not None:
            object.__setattr__(self, 'tariff', self.prices.tariff())


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


# Made for each host and flavor, thousands in one request: a tuple takes a
# third of the time.
class Need(ty.NamedTuple):
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
    """What an instance takes of this host; see :class:`Asking`."""
    return Asking(ask).need(host)


def need_by(name: reservation.Backend, ask: Ask,
            promise: reservation.Reservation, host: Host) -> Need:
    """What an instance takes of this host when a certain backend holds it.

    :param promise: what is asked, of any backend.
    """
    return _Way(name, ask, promise).need(host, Asking(ask).cost_mcpu(host))


#: What a reservation that names no backend may be held by.
_BY_ITSELF = tuple(
    name for name in reservation.Backend if name in reservation.GUARANTEES)


class Asking:
    """What an instance asks, made ready to be asked of many hosts.

    Whatever does not depend on a host is found out once. Safe from any
    thread: what is remembered is the same whoever finds it out.

    :param ask: what is asked.
    """

    __slots__ = ('_rates', '_ways', 'ask')

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        rates = dataclasses.astuple(ask.rates)
        self._rates: tuple[int, int, int, int] | None = (
            rates if any(rates) else None)
        promise = ask.promise
        self._ways = [] if promise is None else [
            _Way(name, ask, promise) for name in (
                _BY_ITSELF if promise.backend is None
                else (promise.backend,))]

    def cost_mcpu(self, host: Host) -> int | None:
        """What the host's work on the I/O takes; None when not known."""
        if self._rates is None:
            return 0
        if host.tariff is None:
            return None
        return overhead.cost_mcpu(self._rates, host.tariff)

    def need(self, host: Host) -> Need:
        """What an instance takes of this host.

        The first backend that does counts, as it does for the agent; when
        none does, the problems are those of the first one that the host has.
        """
        cost_mcpu = self.cost_mcpu(host)
        first = None
        for way in self._ways:
            if way.name in host.backends:
                found = way.need(host, cost_mcpu)
                if not found.problems or found.refusal is None:
                    return found
                if first is None:
                    first = found
        return self._without(host, cost_mcpu) if first is None else first

    def _without(self, host: Host, cost_mcpu: int | None) -> Need:
        promise = self.ask.promise
        if promise is None:
            return Need(overhead_mcpu=cost_mcpu)
        own_mcpu = promise.bandwidth_mcpu(self.ask.vcpus)
        return Need(
            runtime_us=promise.runtime_us, guest_mcpu=own_mcpu,
            overhead_mcpu=cost_mcpu, demand_mcpu=own_mcpu,
            problems=(Problem(
                Cause.BACKEND, 'needs backend %s; the host can use %s' % (
                    ' or '.join(way.name for way in self._ways),
                    ', '.join(sorted(host.backends)) or 'none')),))


class _Way:
    """One backend by which a promise may be held."""

    __slots__ = ('_ask', '_backend', '_key', '_known', '_own_mcpu',
                 '_per_runtime', '_promise', '_share_ppm', '_takes',
                 '_told', '_unmeasured', 'name')

    def __init__(self, backend: reservation.Backend, ask: Ask,
                 promise: reservation.Reservation) -> None:
        self._ask, self._backend, self._promise = ask, backend, promise
        self.name = str(backend)
        self._key = sharing.one((self.name, promise.period_us))
        # In whole ppm, and down.
        self._share_ppm = int(promise.utilisation * error.PPM)
        self._own_mcpu = promise.bandwidth_mcpu(ask.vcpus)
        self._per_runtime = reservation.MCPU_PER_CPU * ask.vcpus
        self._takes = backend in reservation.GUARANTEES
        self._unmeasured = Problem(
            Cause.ERROR, 'backend %s was not measured under contention at a '
            'period of %d us' % self._key, unknown=True)
        # Of the tick, and of the measured shares, that were looked at last.
        self._told: tuple[int, list[Problem]] = -1, []
        self._known: tuple[tuple[int, ...], int, int] = (), 0, 0

    def need(self, host: Host, cost_mcpu: int | None) -> Need:
        """What an instance takes of this host."""
        ask, promise = self._ask, self._promise
        problems = self._problems(host.tick_us)
        runtime_us, margin_ppm = promise.runtime_us, 0
        certificate = host.certified.get(self._key)
        error_ppm = None if certificate is None else self._error_ppm(
            certificate)
        if ask.bound_ppm is not None and (
                error_ppm is None or error_ppm < -ask.bound_ppm):
            inflated_us = None
            if error_ppm is not None:
                margin = error.margin_ppm(error_ppm, ask.bound_ppm)
                if margin is not None and (
                        margin <= host.policy.most_margin_ppm):
                    margin_ppm = margin
                    inflated_us = error.inflated_us(
                        runtime_us, promise.period_us, margin)
            if inflated_us is None:
                problems = [*problems, self._uncertain(
                    ask.bound_ppm, certificate, error_ppm)]
            else:
                runtime_us = inflated_us
        own_mcpu = demand_mcpu = (
            self._own_mcpu if runtime_us == promise.runtime_us
            # Rounded up.
            else -(self._per_runtime * runtime_us // -promise.period_us))
        if ask.charged is not None:
            if cost_mcpu is None:
                problems = [*problems, Problem(
                    Cause.OVERHEAD, 'what I/O costs there was not measured',
                    unknown=not host.policy.refuse_unpriced)]
            else:
                demand_mcpu = overhead.total_mcpu(
                    own_mcpu, cost_mcpu, ask.charged)
                if ask.charged and cost_mcpu * error.PPM > (
                        own_mcpu * host.policy.most_overhead_ppm):
                    problems = [*problems, _too_dear(
                        cost_mcpu, own_mcpu, host.policy)]
        return Need(
            self._backend, runtime_us, own_mcpu, margin_ppm, cost_mcpu,
            demand_mcpu if self._takes else 0, error_ppm, tuple(problems))

    def _uncertain(self, bound_ppm: int,
                   certificate: certificates.Certificate | None,
                   error_ppm: int | None) -> Problem:
        if certificate is None:
            return self._unmeasured
        if error_ppm is None:
            return Problem(
                Cause.ERROR, 'backend %s has too few samples near a share of '
                '%g %%' % (self.name, self._share_ppm / 10_000), unknown=True)
        return Problem(
            Cause.ERROR, 'backend %s falls short by %g %% in one second of a '
            'hundred at a share of %g %%; %g %% may be missing, and no margin '
            'that is allowed makes up for it' % (
                self.name, -error_ppm / 10_000, self._share_ppm / 10_000,
                bound_ppm / 10_000))

    def _problems(self, tick_us: int) -> list[Problem]:
        known_us, problems = self._told
        if known_us != tick_us:
            problems = [
                Problem(Cause.RESERVATION, detail) for detail in
                self._promise.problems(self._backend, tick_us)]
            self._told = tick_us, problems
        return problems

    def _error_ppm(self, certificate: certificates.Certificate) -> int | None:
        shares, first, end = self._known
        if shares is not certificate.shares_ppm:
            shares = certificate.shares_ppm
            first, end = certificates.speaking(shares, self._share_ppm)
            self._known = shares, first, end
        return certificate.worst_ppm(first, end)


def _too_dear(cost_mcpu: int, own_mcpu: int, policy: Policy) -> Problem:
    return Problem(
        Cause.OVERHEAD, 'its I/O would cost %d of its %d mcpu there, more '
        'than %g %%' % (cost_mcpu, own_mcpu,
                        policy.most_overhead_ppm / 10_000))
