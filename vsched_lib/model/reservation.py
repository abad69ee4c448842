# SPDX-License-Identifier: Apache-2.0

"""The reservation of one instance, and what each backend can express.

A reservation is a runtime Q in every period P for each vCPU. All arithmetic
on it is exact: utilisations are :class:`fractions.Fraction`, and rounding
happens once, at the edge, in the direction that never overcommits a host.
"""

from collections.abc import Mapping
import dataclasses
import enum
from fractions import Fraction
import functools
import math
import types

MCPU_PER_CPU = 1000
NS_PER_US = 1000

#: Into how many equal parts a backend may divide runtime and period. Each
#: divides a microsecond into whole nanoseconds.
GRANULARITIES = (1, 2, 4, 8)

#: The kernel keeps bandwidth as a fixed-point number with this many
#: fractional bits (BW_SHIFT in kernel/sched/sched.h).
KERNEL_BW_SHIFT = 20

#: How long a throttled thread may have to repay at the worst. A budget
#: smaller than a tick is overrun by up to a tick, and the kernel makes the
#: thread wait for as many periods as it takes to earn that back.
MAX_DEBT_US = 1_000_000


class Mode(enum.StrEnum):
    """Whether the runtime is a cap as well as a guarantee."""

    CAPPED = 'capped'
    WORK_CONSERVING = 'work_conserving'


class Backend(enum.StrEnum):
    """The mechanism that enforces a reservation."""

    DEADLINE = 'deadline'
    CFS = 'cfs'
    RTDS = 'rtds'
    CREDIT2 = 'credit2'
    CREDIT = 'credit'


#: The backends that keep a reservation under contention. The others cap and
#: weigh; what they provide depends on the neighbours.
GUARANTEES = frozenset({Backend.DEADLINE, Backend.RTDS})

#: The backends whose reservations take part of the host's capacity. By weights
#: whose sum is bounded, domains of Xen get their shares over some time, and
#: not in each period.
ADMITTED = GUARANTEES | {Backend.CREDIT2, Backend.CREDIT}

#: The backends that schedule threads of Linux. The others schedule what runs
#: beside the first domain's Linux.
OF_LINUX = frozenset({Backend.DEADLINE, Backend.CFS})


class InvalidReservation(ValueError):
    """A reservation that no host could hold.

    :ivar field: name of the offending field.
    :ivar detail: what was wrong and what is accepted.
    """

    def __init__(self, field: str, detail: str) -> None:
        super().__init__('%s: %s' % (field, detail))
        self.field = field
        self.detail = detail


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The inclusive ranges that one backend accepts, in microseconds."""

    runtime_us_min: int
    runtime_us_max: int
    period_us_min: int
    period_us_max: int


#: deadline: kernel/sched/deadline.c accepts runtimes from 1024 ns and
#: periods between the sched_deadline_period_{min,max}_us sysctls, whose
#: defaults these are. cfs: the ranges libvirt and the cpu controller accept.
#: rtds: RTDS_MIN_BUDGET of xen/common/sched/rt.c. Xen takes periods from 10 us
#: to 10 s, extra specs do not. credit2 and credit have no periods: what extra
#: specs take.
LIMITS: Mapping[Backend, Limits] = types.MappingProxyType(
    {
        Backend.DEADLINE: Limits(2, 4_194_304, 100, 4_194_304),
        Backend.CFS: Limits(1_000, 1_000_000, 1_000, 1_000_000),
        Backend.RTDS: Limits(10, 4_194_304, 100, 4_194_304),
        Backend.CREDIT2: Limits(2, 4_194_304, 100, 4_194_304),
        Backend.CREDIT: Limits(2, 4_194_304, 100, 4_194_304),
    }
)


def _whole(field: str, value: object) -> int:
    # bool is an int in Python, but never a number of microseconds.
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidReservation(
            field, '%r is not a whole number of microseconds' % (value,)
        )
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """Runtime Q in every period P, for each vCPU of one instance.

    :param runtime_us: Q, 1 to ``period_us``, in microseconds.
    :param period_us: P, in microseconds.
    :param mode: cap as well as guarantee, or guarantee only.
    :param backend: the one backend accepted, or None for the best the host
        has.
    :param granularity: how many equal parts of the runtime and period a
        thread gets: Q/k every P/k, with the same bandwidth.
    :raises InvalidReservation: when no backend could express it.
    """

    runtime_us: int
    period_us: int
    mode: Mode = Mode.CAPPED
    backend: Backend | None = None
    granularity: int = 1

    def __post_init__(self) -> None:
        runtime = _whole('runtime_us', self.runtime_us)
        period = _whole('period_us', self.period_us)
        if runtime < 1:
            raise InvalidReservation('runtime_us', '%d is below 1' % runtime)
        if period < 1:
            raise InvalidReservation('period_us', '%d is below 1' % period)
        if runtime > period:
            raise InvalidReservation(
                'runtime_us',
                '%d is more than the period of %d: one vCPU cannot use '
                'more than one CPU' % (runtime, period),
            )
        try:
            object.__setattr__(self, 'mode', Mode(self.mode))
        except ValueError:
            raise InvalidReservation(
                'mode', '%r is not one of %s' % (self.mode, ', '.join(Mode))
            ) from None
        if self.backend is not None:
            try:
                object.__setattr__(self, 'backend', Backend(self.backend))
            except ValueError:
                raise InvalidReservation(
                    'backend',
                    '%r is not one of %s' % (self.backend, ', '.join(Backend)),
                ) from None
        if self.granularity not in GRANULARITIES:
            raise InvalidReservation(
                'granularity',
                '%r is not one of %s'
                % (self.granularity, ', '.join(map(str, GRANULARITIES))),
            )

    @property
    def divided_ns(self) -> tuple[int, int]:
        """Return the runtime and the period of one part, exact."""
        return (
            self.runtime_us * NS_PER_US // self.granularity,
            self.period_us * NS_PER_US // self.granularity,
        )

    @property
    def utilisation(self) -> Fraction:
        """Q/P of one vCPU, in CPUs, exact."""
        return Fraction(self.runtime_us, self.period_us)

    def bandwidth(self, vcpus: int) -> Fraction:
        """The sum of Q/P over ``vcpus`` vCPUs, in CPUs, exact."""
        return _bandwidth(self.runtime_us, self.period_us, vcpus)

    def bandwidth_mcpu(self, vcpus: int) -> int:
        """Return the bandwidth in milli-CPU, rounded up to be safe."""
        return math.ceil(self.bandwidth(vcpus) * MCPU_PER_CPU)

    def worst_debt_us(self, tick_us: int) -> int:
        """Return the longest wait after an overrun of one scheduler tick.

        Without high-resolution preemption the kernel notices an exhausted
        budget at the next tick; the overrun is repaid at Q per P, so the
        wait is about (tick/Q)·P when the budget is smaller than the tick.

        :param tick_us: the host's scheduler tick in microseconds.
        :returns: microseconds; 0 when the budget covers the tick.
        """
        if self.runtime_us >= tick_us:
            return 0
        return math.ceil(Fraction(tick_us, self.runtime_us) * self.period_us)

    def problems(self, backend: Backend, tick_us: int = 0) -> list[str]:
        """Return why this backend cannot express the reservation.

        :param tick_us: the host's tick, or 0 to leave debts out.
        :returns: sentences with the figure and the accepted range; empty
            when it can.
        """
        limits = LIMITS.get(backend)
        if limits is None:
            return ['backend %s is not one this host type has' % backend]
        found = []
        for name, value, low, high in (
            (
                'runtime_us',
                self.runtime_us,
                limits.runtime_us_min,
                limits.runtime_us_max,
            ),
            (
                'period_us',
                self.period_us,
                limits.period_us_min,
                limits.period_us_max,
            ),
        ):
            if not low <= value <= high:
                found.append(
                    '%s %d is outside %d..%d of backend %s'
                    % (name, value, low, high, backend)
                )
        if backend is Backend.CFS and self.mode is Mode.WORK_CONSERVING:
            found.append(
                'a cfs quota caps and guarantees nothing: mode '
                'work_conserving needs backend deadline'
            )
        if backend is Backend.DEADLINE and tick_us:
            debt_us = self.worst_debt_us(tick_us)
            if debt_us > MAX_DEBT_US:
                found.append(
                    'runtime_us %d in period_us %d could owe %d us after '
                    "one overrun of the host's %d us tick, more than %d: "
                    'use at least runtime_us %d'
                    % (
                        self.runtime_us,
                        self.period_us,
                        debt_us,
                        tick_us,
                        MAX_DEBT_US,
                        least_runtime_us(self.period_us, tick_us),
                    )
                )
        return found


def least_runtime_us(period_us: int, tick_us: int) -> int:
    """Return the smallest budget whose worst debt is acceptable.

    :param tick_us: the host's scheduler tick; 0 to ignore debts.
    """
    return max(
        1,
        min(
            period_us,
            tick_us,
            math.ceil(Fraction(tick_us * period_us, MAX_DEBT_US)),
        ),
    )


# Computed for every instance at every pass, for a few flavors: exact
# fractions are worth caching.
@functools.lru_cache(maxsize=4096)
def _bandwidth(runtime_us: int, period_us: int, vcpus: int) -> Fraction:
    return Fraction(runtime_us * vcpus, period_us)


def kernel_bandwidth(runtime_ns: int, period_ns: int) -> int:
    """Return the kernel's own fixed-point bandwidth of one thread.

    This is ``to_ratio()`` of kernel/sched/core.c: truncated, 2**20 is one
    CPU.

    :param runtime_ns: budget in nanoseconds.
    :param period_ns: period in nanoseconds.
    :returns: bandwidth in 2**-20 CPUs.
    """
    return (runtime_ns << KERNEL_BW_SHIFT) // period_ns
