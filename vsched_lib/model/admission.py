# SPDX-License-Identifier: Apache-2.0

"""Schedulability tests: whether a set of reservations fits on a host.

Filters, agent and simulator share them. The kernel's own verdict is final;
these tests never admit more than it does.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum
from fractions import Fraction
import math

from vsched_lib.model import host
from vsched_lib.model import reservation


class Test(enum.StrEnum):
    """The schedulability tests."""

    BANDWIDTH = 'bandwidth'
    GFB = 'gfb'
    PARTITIONED = 'partitioned'


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a test, with its figures.

    :param fits: whether the whole set fits.
    :param test: the test that decided.
    :param needed: CPUs the set needs under that test.
    :param bound: CPUs the test allows.
    :param cpu: the CPU that overflows, for ``partitioned`` only.
    """

    fits: bool
    test: Test
    needed: Fraction
    bound: Fraction
    cpu: int | None = None

    @property
    def needed_mcpu(self) -> int:
        """Milli-CPU needed, rounded up."""
        return math.ceil(self.needed * reservation.MCPU_PER_CPU)

    @property
    def bound_mcpu(self) -> int:
        """Milli-CPU allowed, rounded down."""
        return math.floor(self.bound * reservation.MCPU_PER_CPU)

    @property
    def reason(self) -> str:
        """The verdict as a sentence with its figures."""
        where = 'on CPU %d ' % self.cpu if self.cpu is not None else ''
        return '%s: %d mcpu needed %s%s %d mcpu allowed' % (
            self.test,
            self.needed_mcpu,
            where,
            'fit in' if self.fits else 'exceed',
            self.bound_mcpu,
        )


def bandwidth(utilisations: Iterable[Fraction], bound: Fraction) -> Verdict:
    """Test whether the total utilisation is within a bound.

    The kernel's own test for SCHED_DEADLINE under global EDF
    (Documentation/scheduler/sched-deadline.rst): it bounds tardiness, it
    does not exclude it.

    :param utilisations: Q/P of every vCPU on the host, in CPUs.
    :param bound: CPUs that may be reserved.
    """
    needed = sum(utilisations, Fraction(0))
    return Verdict(needed <= bound, Test.BANDWIDTH, needed, bound)


def gfb(
    utilisations: Iterable[Fraction], cpus: int, bound: Fraction | None = None
) -> Verdict:
    """Test whether no deadline is missed under global EDF.

    The density bound of Goossens, Funk and Baruah ("Priority-driven
    scheduling of periodic task systems on multiprocessors", 2003):
    ΣU ≤ m − (m − 1)·Umax. With ``bound`` each of the m CPUs counts as one
    of speed bound/m, which the same proof covers.

    :param utilisations: Q/P of every vCPU on the host, in CPUs.
    :param cpus: m, CPUs that global EDF schedules over.
    :param bound: CPUs that may be reserved; None for all of them.
    """
    every = tuple(utilisations)
    needed = sum(every, Fraction(0))
    highest = max(every, default=Fraction(0))
    speed = Fraction(cpus)
    if bound is not None:
        speed = min(speed, bound)
    allowed = speed - (cpus - 1) * highest
    return Verdict(
        needed <= allowed, Test.GFB, needed, max(Fraction(0), allowed)
    )


def partitioned(
    per_cpu: Mapping[int, Iterable[Fraction]], bound: Fraction
) -> Verdict:
    """Test each CPU by itself, for vCPUs pinned to one CPU each.

    :param per_cpu: for each CPU, Q/P of the vCPUs pinned to it.
    :param bound: the share of one CPU that may be reserved.
    :returns: the verdict of the fullest CPU.
    """
    fullest, cpu = Fraction(0), None
    for number, utilisations in per_cpu.items():
        needed = sum(utilisations, Fraction(0))
        if cpu is None or needed > fullest:
            fullest, cpu = needed, number
    return Verdict(fullest <= bound, Test.PARTITIONED, fullest, bound, cpu)


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """One instance's claim on a host.

    :param reservation: of each vCPU.
    :param pins: for each vCPU the one CPU it is pinned to, or None when it
        may run anywhere.
    """

    reservation: reservation.Reservation
    pins: tuple[int | None, ...]

    @property
    def utilisations(self) -> tuple[Fraction, ...]:
        """Q/P of each vCPU, in CPUs."""
        return (self.reservation.utilisation,) * len(self.pins)


def admit(
    claims: Iterable[Claim],
    capacity: host.Capacity,
    test: Test = Test.BANDWIDTH,
) -> Verdict:
    """Test whether all these claims fit on one host together.

    Pinned vCPUs always have to pass ``partitioned`` on their CPU as well:
    the kernel admits them globally and would let one CPU be reserved twice.

    :param claims: every claim, those already held included.
    :param capacity: what can be reserved on the host.
    :param test: ``bandwidth`` or ``gfb`` for the whole set, or
        ``partitioned`` to test pinned vCPUs only.
    :returns: the first verdict that does not fit, or that of ``test``.
    """
    utilisations: list[Fraction] = []
    per_cpu: dict[int, list[Fraction]] = {}
    for claim in claims:
        utilisations.extend(claim.utilisations)
        for pin in claim.pins:
            if pin is not None:
                per_cpu.setdefault(pin, []).append(
                    claim.reservation.utilisation
                )
    pinned = partitioned(per_cpu, capacity.per_cpu_bound)
    if not pinned.fits or test is Test.PARTITIONED:
        return pinned
    if test is Test.GFB:
        whole = gfb(utilisations, capacity.cpus, capacity.bound)
    else:
        whole = bandwidth(utilisations, capacity.bound)
    return whole
