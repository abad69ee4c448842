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

"""Does this set of reservations fit on this host?

One answer for the filter, the agent and the simulator alike. The kernel's
own verdict stays final; these tests are never more generous than it.
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
    """Which schedulability test decides."""

    BANDWIDTH = 'bandwidth'
    GFB = 'gfb'
    PARTITIONED = 'partitioned'


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with the figures behind it.

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
        """The verdict in words that an operator can act on."""
        where = 'on CPU %d ' % self.cpu if self.cpu is not None else ''
        return '%s: %d mcpu needed %s%s %d mcpu allowed' % (
            self.test, self.needed_mcpu, where,
            'fit in' if self.fits else 'exceed', self.bound_mcpu)


def bandwidth(utilisations: Iterable[Fraction], bound: Fraction) -> Verdict:
    """Total utilisation within a bound.

    The kernel's own test for SCHED_DEADLINE under global EDF
    (Documentation/scheduler/sched-deadline.rst): it bounds tardiness, it
    does not exclude it.

    :param utilisations: Q/P of every vCPU on the host, in CPUs.
    :param bound: CPUs that may be promised.
    """
    needed = sum(utilisations, Fraction(0))
    return Verdict(needed <= bound, Test.BANDWIDTH, needed, bound)


def gfb(utilisations: Iterable[Fraction], cpus: int,
        bound: Fraction | None = None) -> Verdict:
    """No deadline missed under global EDF.

    The density bound of Goossens, Funk and Baruah ("Priority-driven
    scheduling of periodic task systems on multiprocessors", 2003):
    ΣU ≤ m − (m − 1)·Umax. With ``bound`` each of the m CPUs counts as one
    of speed bound/m, which the same proof covers.

    :param utilisations: Q/P of every vCPU on the host, in CPUs.
    :param cpus: m, CPUs that global EDF schedules over.
    :param bound: CPUs that may be promised; None for all of them.
    """
    every = tuple(utilisations)
    needed = sum(every, Fraction(0))
    highest = max(every, default=Fraction(0))
    speed = Fraction(cpus)
    if bound is not None:
        speed = min(speed, bound)
    allowed = speed - (cpus - 1) * highest
    return Verdict(needed <= allowed, Test.GFB, needed,
                   max(Fraction(0), allowed))


def partitioned(per_cpu: Mapping[int, Iterable[Fraction]],
                bound: Fraction) -> Verdict:
    """Each CPU within its own bound, for vCPUs pinned to one CPU each.

    :param per_cpu: for each CPU, Q/P of the vCPUs pinned to it.
    :param bound: the share of one CPU that may be promised.
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

    :param reservation: what each vCPU is promised.
    :param pins: for each vCPU the one CPU it is pinned to, or None when it
        may run anywhere.
    """

    reservation: reservation.Reservation
    pins: tuple[int | None, ...]

    @property
    def utilisations(self) -> tuple[Fraction, ...]:
        """Q/P of each vCPU, in CPUs."""
        return (self.reservation.utilisation,) * len(self.pins)


def admit(claims: Iterable[Claim], capacity: host.Capacity,
          test: Test = Test.BANDWIDTH) -> Verdict:
    """Whether all these claims fit on one host together.

    Pinned vCPUs always have to pass ``partitioned`` on their CPU as well:
    the kernel admits them globally and would let one CPU be promised twice.

    :param claims: every claim, those already held included.
    :param capacity: what the host can promise.
    :param test: ``bandwidth`` or ``gfb`` for the whole set, or
        ``partitioned`` to look at pinned vCPUs only.
    :returns: the first verdict that does not fit, or that of ``test``.
    """
    utilisations: list[Fraction] = []
    per_cpu: dict[int, list[Fraction]] = {}
    for claim in claims:
        utilisations.extend(claim.utilisations)
        for pin in claim.pins:
            if pin is not None:
                per_cpu.setdefault(pin, []).append(
                    claim.reservation.utilisation)
    pinned = partitioned(per_cpu, capacity.per_cpu_bound)
    if not pinned.fits or test is Test.PARTITIONED:
        return pinned
    if test is Test.GFB:
        whole = gfb(utilisations, capacity.cpus, capacity.bound)
    else:
        whole = bandwidth(utilisations, capacity.bound)
    return whole
