# SPDX-License-Identifier: Apache-2.0

"""Whether a host can provide what a flavor reserves, and if not, why.

Shared by the scheduler's filters, evaluations and the agent. It has two
parts: what the flavor needs of this kind of host, which only changes with
new measurements of the host, is here; whether that much is free, which is one
comparison, is in :mod:`vsched_lib.model.room`.

The agent's admission uses the same rules and facts, and adds what only it can
know: the CPUs that vCPUs are pinned to, ``gfb`` over all claims, and the
kernel's verdict. So nothing here is stricter than the agent, and what is
admitted here the agent may still refuse.
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
    UNREADABLE = 'unreadable'


@dataclasses.dataclass(frozen=True, slots=True)
class Ask:
    """What one instance needs, independent of the host.

    :param vcpus: how many it has.
    :param promise: the reservation of each of them, if any.
    :param bound_ppm: what may be missing in one second of a hundred, in ppm
        of the reservation; None for no bound.
    :param rates: the I/O it is expected to do.
    :param charged: the host's work on that comes out of the reservation
        (True), on top of it (False), or is left out (None).
    :param workload_class: of the flavor, if it has one.
    """

    vcpus: int
    promise: reservation.Reservation | None = None
    bound_ppm: int | None = None
    rates: overhead.Rates = overhead.Rates()
    charged: bool | None = None
    workload_class: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """How a host uses its measurements.

    :param most_margin_ppm: the largest margin, of the runtime.
    :param most_overhead_ppm: the largest part of a reservation that may go
        to the host's work on its I/O.
    :param refuse_unpriced: whether I/O whose cost was not measured is refused;
        else it counts as free.
    """

    most_margin_ppm: int = 250_000
    most_overhead_ppm: int = 500_000
    refuse_unpriced: bool = False


DEFAULT = Policy()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Host:
    """What is known of a host, without what is in use there.

    :param capacity_mcpu: what reservations may use in total.
    :param backends: those that it can use.
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
        dataclasses.field(default_factory=dict)
    )
    prices: overhead.Fit | None = None
    policy: Policy = DEFAULT
    #: The prices in the form for queries, computed once per host.
    tariff: overhead.Tariff | None = dataclasses.field(
        init=False, default=None
    )

    def __post_init__(self) -> None:
        for name, value in (
            ('backends', sharing.one(self.backends)),
            ('policy', sharing.one(self.policy)),
            (
                'certified',
                {
                    sharing.one(kind): known
                    for kind, known in self.certified.items()
                },
            ),
        ):
            object.__setattr__(self, name, value)
        if self.prices is not None:
            object.__setattr__(self, 'tariff', self.prices.tariff())


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One reason against a host.

    :param detail: with the figures.
    :param unknown: whether the reason is a missing measurement.
    """

    cause: Cause
    detail: str
    unknown: bool = False

    @property
    def tolerated(self) -> bool:
        """Whether the host takes the instance nevertheless.

        It does if only the price of I/O is unknown, but not if its errors
        are.
        """
        return self.unknown and self.cause is Cause.OVERHEAD


# Made for each host and flavor, thousands in one request: a tuple takes a
# third of the time of a dataclass.
class Need(ty.NamedTuple):
    """What a flavor needs of one host.

    :param backend: that would enforce the reservation; None without one.
    :param runtime_us: of each vCPU in every period, with the margin; 0
        without a reservation.
    :param guest_mcpu: likewise of all vCPUs.
    :param margin_ppm: of the runtime, for the measured errors.
    :param overhead_mcpu: the host's work on the I/O; None when the host was
        not measured.
    :param demand_mcpu: the part of the host's capacity: 0 when the backend
        takes none of it.
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
        """The first problem for which the host refuses the instance."""
        for problem in self.problems:
            if not problem.tolerated:
                return problem
        return None


def need(ask: Ask, host: Host) -> Need:
    """Return what an instance needs of this host; see :class:`Asking`."""
    return Asking(ask).need(host)


def need_by(
    name: reservation.Backend,
    ask: Ask,
    reserved: reservation.Reservation,
    host: Host,
) -> Need:
    """Return what an instance needs of this host with a given backend.

    :param reserved: its reservation, whose backend is ignored.
    """
    return _BackendFit(name, ask, reserved).need(
        host, Asking(ask).cost_mcpu(host)
    )


#: The backends of a reservation that names none.
_BY_ITSELF = tuple(
    name for name in reservation.Backend if name in reservation.GUARANTEES
)


class Asking:
    """What an instance needs, prepared for many hosts.

    What does not depend on a host is computed once. Safe from any thread:
    all threads would cache the same values.
    """

    __slots__ = ('_rates', '_backends', 'ask')

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        rates = dataclasses.astuple(ask.rates)
        self._rates: tuple[int, int, int, int] | None = (
            rates if any(rates) else None
        )
        reserved = ask.promise
        self._backends = (
            []
            if reserved is None
            else [
                _BackendFit(name, ask, reserved)
                for name in (
                    _BY_ITSELF
                    if reserved.backend is None
                    else (reserved.backend,)
                )
            ]
        )

    def cost_mcpu(self, host: Host) -> int | None:
        """Return the cost of the I/O on the host; None when unknown."""
        if self._rates is None:
            return 0
        if host.tariff is None:
            return None
        return overhead.cost_mcpu(self._rates, host.tariff)

    def need(self, host: Host) -> Need:
        """Return what an instance needs of this host.

        The first backend without a refusal counts, as in the agent; if all
        refuse, the problems are those of the first one that the host has.
        """
        cost_mcpu = self.cost_mcpu(host)
        first = None
        for one in self._backends:
            if one.name in host.backends:
                found = one.need(host, cost_mcpu)
                if not found.problems or found.refusal is None:
                    return found
                if first is None:
                    first = found
        return self._without(host, cost_mcpu) if first is None else first

    def _without(self, host: Host, cost_mcpu: int | None) -> Need:
        reserved = self.ask.promise
        if reserved is None:
            return Need(overhead_mcpu=cost_mcpu)
        own_mcpu = reserved.bandwidth_mcpu(self.ask.vcpus)
        return Need(
            runtime_us=reserved.runtime_us,
            guest_mcpu=own_mcpu,
            overhead_mcpu=cost_mcpu,
            demand_mcpu=own_mcpu,
            problems=(
                Problem(
                    Cause.BACKEND,
                    'needs backend %s; the host can use %s'
                    % (
                        ' or '.join(one.name for one in self._backends),
                        ', '.join(sorted(host.backends)) or 'none',
                    ),
                ),
            ),
        )


class _BackendFit:
    """The fit of a reservation with one backend."""

    __slots__ = (
        '_ask',
        '_backend',
        '_key',
        '_known',
        '_own_mcpu',
        '_per_runtime',
        '_reserved',
        '_share_ppm',
        '_takes',
        '_tick_problems',
        '_unmeasured',
        'name',
    )

    def __init__(
        self,
        backend: reservation.Backend,
        ask: Ask,
        reserved: reservation.Reservation,
    ) -> None:
        self._ask, self._backend, self._reserved = ask, backend, reserved
        self.name = str(backend)
        self._key = sharing.one((self.name, reserved.period_us))
        # Rounded down to whole ppm.
        self._share_ppm = int(reserved.utilisation * error.PPM)
        self._own_mcpu = reserved.bandwidth_mcpu(ask.vcpus)
        self._per_runtime = reservation.MCPU_PER_CPU * ask.vcpus
        self._takes = backend in reservation.ADMITTED
        self._unmeasured = Problem(
            Cause.ERROR,
            'backend %s was not measured under contention at a '
            'period of %d us' % self._key,
            unknown=True,
        )
        # Caches for the last tick, and for the last measured shares.
        self._tick_problems: tuple[int, list[Problem]] = -1, []
        self._known: tuple[tuple[int, ...], int, int] = (), 0, 0

    def need(self, host: Host, cost_mcpu: int | None) -> Need:
        """Return what an instance needs of this host."""
        ask, reserved = self._ask, self._reserved
        problems = self._problems(host.tick_us)
        runtime_us, margin_ppm = reserved.runtime_us, 0
        certificate = host.certified.get(self._key)
        error_ppm = (
            None if certificate is None else self._error_ppm(certificate)
        )
        if ask.bound_ppm is not None and (
            error_ppm is None or error_ppm < -ask.bound_ppm
        ):
            inflated_us = None
            if error_ppm is not None:
                margin = error.margin_ppm(error_ppm, ask.bound_ppm)
                if margin is not None and (
                    margin <= host.policy.most_margin_ppm
                ):
                    margin_ppm = margin
                    inflated_us = error.inflated_us(
                        runtime_us, reserved.period_us, margin
                    )
            if inflated_us is None:
                problems = [
                    *problems,
                    self._uncertain(ask.bound_ppm, certificate, error_ppm),
                ]
            else:
                runtime_us = inflated_us
        own_mcpu = demand_mcpu = (
            self._own_mcpu
            if runtime_us == reserved.runtime_us
            # Rounded up.
            else -(self._per_runtime * runtime_us // -reserved.period_us)
        )
        if ask.charged is not None:
            if cost_mcpu is None:
                problems = [
                    *problems,
                    Problem(
                        Cause.OVERHEAD,
                        'what I/O costs there was not measured',
                        unknown=not host.policy.refuse_unpriced,
                    ),
                ]
            else:
                demand_mcpu = overhead.total_mcpu(
                    own_mcpu, cost_mcpu, ask.charged
                )
                if ask.charged and cost_mcpu * error.PPM > (
                    own_mcpu * host.policy.most_overhead_ppm
                ):
                    problems = [
                        *problems,
                        _too_expensive(cost_mcpu, own_mcpu, host.policy),
                    ]
        return Need(
            self._backend,
            runtime_us,
            own_mcpu,
            margin_ppm,
            cost_mcpu,
            demand_mcpu if self._takes else 0,
            error_ppm,
            tuple(problems),
        )

    def _uncertain(
        self,
        bound_ppm: int,
        certificate: certificates.Certificate | None,
        error_ppm: int | None,
    ) -> Problem:
        if certificate is None:
            return self._unmeasured
        if error_ppm is None:
            return Problem(
                Cause.ERROR,
                'backend %s has too few samples near a share of '
                '%g %%' % (self.name, self._share_ppm / 10_000),
                unknown=True,
            )
        return Problem(
            Cause.ERROR,
            'backend %s falls short by %g %% in one second of a '
            'hundred at a share of %g %%; %g %% may be missing, and no margin '
            'that is allowed makes up for it'
            % (
                self.name,
                -error_ppm / 10_000,
                self._share_ppm / 10_000,
                bound_ppm / 10_000,
            ),
        )

    def _problems(self, tick_us: int) -> list[Problem]:
        known_us, problems = self._tick_problems
        if known_us != tick_us:
            problems = [
                Problem(Cause.RESERVATION, detail)
                for detail in self._reserved.problems(self._backend, tick_us)
            ]
            self._tick_problems = tick_us, problems
        return problems

    def _error_ppm(self, certificate: certificates.Certificate) -> int | None:
        shares, first, end = self._known
        if shares is not certificate.shares_ppm:
            shares = certificate.shares_ppm
            first, end = certificates.relevant(shares, self._share_ppm)
            self._known = shares, first, end
        return certificate.worst_ppm(first, end)


def _too_expensive(cost_mcpu: int, own_mcpu: int, policy: Policy) -> Problem:
    return Problem(
        Cause.OVERHEAD,
        'its I/O would cost %d of its %d mcpu there, more '
        'than %g %%'
        % (cost_mcpu, own_mcpu, policy.most_overhead_ppm / 10_000),
    )
