# SPDX-License-Identifier: Apache-2.0

"""The CPU time of a host that can be reserved."""

import dataclasses
from fractions import Fraction
import math

from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Capacity:
    """A host's reservable CPU time.

    :param cpus: CPUs online, the ``m`` of the multiprocessor tests.
    :param admissible: CPUs the kernel admits in total for real-time
        reservations, as measured, not as computed from its settings.
    :param reserve_mcpu: kept back for the host itself, in milli-CPU.
    :raises ValueError: on a negative figure.
    """

    cpus: int
    admissible: Fraction
    reserve_mcpu: int = 0

    def __post_init__(self) -> None:
        if self.cpus < 1:
            raise ValueError('cpus: %d is below 1' % self.cpus)
        if self.admissible < 0:
            raise ValueError('admissible: %s is negative' % self.admissible)
        if self.reserve_mcpu < 0:
            raise ValueError(
                'reserve_mcpu: %d is negative' % self.reserve_mcpu
            )

    @property
    def bound(self) -> Fraction:
        """CPUs that reservations may use in total, exact.

        Never more than there are, whatever a kernel without admission
        control (``sched_rt_runtime_us`` = -1) would take.
        """
        most = min(self.admissible, Fraction(self.cpus))
        return max(
            Fraction(0),
            most - Fraction(self.reserve_mcpu, reservation.MCPU_PER_CPU),
        )

    @property
    def per_cpu_bound(self) -> Fraction:
        """The share of one CPU that reservations pinned to it may use."""
        return min(Fraction(1), self.bound / self.cpus)

    @property
    def capacity_mcpu(self) -> int:
        """The bound in milli-CPU, rounded down to be safe."""
        return math.floor(self.bound * reservation.MCPU_PER_CPU)
