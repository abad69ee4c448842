# SPDX-License-Identifier: Apache-2.0

"""Parameters of Xen's schedulers Credit and Credit2, and what they amount to.

Both have a weight and a cap of each domain, and none of a vCPU. While CPUs are
scarce, domains get them in proportion to their weights; the cap is the most
that a domain gets at any time, idle CPUs or not.

The weight of a reservation is its sum in milli-CPU. As long as the sum of all
weights is at most the milli-CPU of the host, the proportional part of each
domain is at least its weight in milli-CPU. So the schedulers' own parameters
are the account that admission compares with the CPUs.
"""

from collections.abc import Iterable
import dataclasses
from fractions import Fraction
import math
import typing as ty

from vsched_lib.model import reservation

#: What both give to a new domain; no cap.
DEFAULT_WEIGHT, NO_CAP = 256, 0

#: The range of weights that the toolstack takes, and one CPU as a cap.
LEAST_WEIGHT, MOST_WEIGHT, CAP_PER_CPU = 1, 65_535, 100

#: One percent of a CPU, the unit of caps.
_MCPU_PER_CAP = reservation.MCPU_PER_CPU // CAP_PER_CPU

#: Over how long a cap is kept, by default: the time slice of Credit, and the
#: period in which Credit2 replenishes budgets. A reservation with a shorter
#: period gets its share over this time.
KEPT_US = {
    reservation.Backend.CREDIT: 30_000,
    reservation.Backend.CREDIT2: 10_000,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Parameters:
    """What a scheduler has of one domain.

    :param weight: relative to those of other domains; of a reservation, its
        sum in milli-CPU.
    :param cap: percent of one CPU for all vCPUs together; 0 for none.
    """

    weight: int
    cap: int = NO_CAP

    @classmethod
    def of(cls, reserved: Iterable[reservation.Reservation]) -> ty.Self:
        """Return the parameters that enforce the reservations of a domain.

        Both are rounded up, the cap to a whole percent of a CPU. There is
        none when the mode of one vCPU is ``work_conserving``.

        :param reserved: of each vCPU.
        :raises ValueError: when the weight is out of range.
        """
        each = list(reserved)
        total = sum((one.utilisation for one in each), Fraction(0))
        weight = math.ceil(total * reservation.MCPU_PER_CPU)
        if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
            raise ValueError(
                'a domain with %d mcpu is outside of %d..%d, the weights of '
                'Xen' % (weight, LEAST_WEIGHT, MOST_WEIGHT)
            )
        if any(one.mode is reservation.Mode.WORK_CONSERVING for one in each):
            return cls(weight)
        return cls(weight, math.ceil(total * CAP_PER_CPU))

    @property
    def utilisation(self) -> Fraction:
        """Return the CPUs that the domain has a right to, exact.

        More than its cap it cannot use, whatever its weight is.
        """
        mcpu = (
            min(self.weight, self.cap * _MCPU_PER_CAP)
            if self.cap
            else self.weight
        )
        return Fraction(mcpu, reservation.MCPU_PER_CPU)

    @property
    def mode(self) -> reservation.Mode:
        """Return the mode of a reservation with these parameters."""
        return (
            reservation.Mode.CAPPED
            if self.cap
            else reservation.Mode.WORK_CONSERVING
        )

    @property
    def weight_is_moot(self) -> bool:
        """Whether the cap is below what the weight gives."""
        return 0 < self.cap * _MCPU_PER_CAP < self.weight

    def share(self, vcpus: int) -> Fraction:
        """Return what each of the domain's vCPUs has a right to, in CPUs.

        :returns: at most 1.
        """
        return min(Fraction(1), self.utilisation / vcpus)


#: What a new domain has.
DEFAULT = Parameters(DEFAULT_WEIGHT)


def total(found: Iterable[Parameters]) -> Fraction:
    """Return what domains have a right to, in CPUs, exact."""
    return sum((one.utilisation for one in found), Fraction(0))


def caps_leave_idle(
    cpus: int, domains: Iterable[Parameters]
) -> Fraction | None:
    """Return the CPUs that the caps of all domains leave idle.

    Then the domains never compete, and their weights have no effect.

    :param cpus: of the host.
    :param domains: all that may compete.
    :returns: in CPUs, exact; None when they may compete: one has no cap, or
        the caps are more than the CPUs.
    """
    caps = [one.cap for one in domains]
    left = cpus - Fraction(sum(caps), CAP_PER_CPU)
    return left if caps and all(caps) and left >= 0 else None


def cautions(
    backend: reservation.Backend, reserved: reservation.Reservation
) -> list[str]:
    """Return what an operator should know of a reservation.

    :returns: sentences with the figures.
    """
    kept_us = KEPT_US[backend]
    if reserved.period_us >= kept_us:
        return []
    return [
        'backend %s keeps shares over %d us or more, and no period of %d us'
        % (backend, kept_us, reserved.period_us)
    ]
