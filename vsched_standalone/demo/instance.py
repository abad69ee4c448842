# SPDX-License-Identifier: Apache-2.0

"""A simulated instance: its load, and the CPU time that it gets."""

import dataclasses
import math
import random

from vsched_lib.contract import messages
from vsched_lib.model import reservation

#: Standard deviation of the allocation error of a guaranteed reservation, in
#: ppm, and its mean.
_ERROR_PPM = 900
_ERROR_MEAN_PPM = -150

#: A quota under contention provides between these parts of itself.
_QUOTA_PARTS = (0.72, 0.99)

#: Kinds of load, as a server's name has them: workload class, mean load and
#: its amplitude in CPUs for each vCPU, packets and disk requests per second.
KINDS = {
    'web': ('web', 0.55, 0.3, 2_400, 30),
    'batch': ('compute', 0.95, 0.05, 20, 4),
    'db': ('transactional', 0.6, 0.25, 900, 450),
    'stream': ('bandwidth', 0.5, 0.15, 6_000, 10),
    'store': ('disk', 0.4, 0.2, 300, 900),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """How much CPU time an instance can use, by the time.

    :param mean: in CPUs for each vCPU.
    :param amplitude: of the variation, likewise.
    :param period_s: of the variation.
    :param phase: of the variation, in radians.
    :param packets_per_s: that it receives; it sends as many.
    :param requests_per_s: of its disks.
    """

    mean: float
    amplitude: float
    period_s: float
    phase: float
    packets_per_s: int
    requests_per_s: int

    def cpus(self, at: float) -> float:
        """Return the load of each vCPU at a time, in CPUs from 0 to 1."""
        angle = 2 * math.pi * at / self.period_s + self.phase
        return min(1.0, max(0.0, self.mean + self.amplitude * math.sin(angle)))


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """The CPU time of one instance in one interval, in microseconds.

    :param desired_us: that its vCPUs could have used.
    :param guest_us: that they got.
    :param reserved_us: None without a reservation.
    :param packets: in each direction.
    """

    desired_us: int
    guest_us: int
    reserved_us: int | None
    direct_us: int
    shared_us: int
    packets: int
    requests: int


class Instance:
    """One instance of a simulated host.

    :param info: as its host lists it.
    :param flavor: the reservation of its flavor; None without one.
    :param load: what it could use.
    :ivar enforced: the reservation in force; None without one.
    :ivar online_vcpus: how many of its vCPUs are online.
    """

    def __init__(
        self,
        info: messages.InstanceInfo,
        flavor: reservation.Reservation | None,
        load: Load,
    ) -> None:
        self.info = info
        self.flavor = flavor
        self.load = load
        self.enforced: reservation.Reservation | None = None
        self.online_vcpus = info.vcpus

    @property
    def uuid(self) -> str:
        """Return the UUID of the instance."""
        return self.info.instance_uuid

    @property
    def enforced_mcpu(self) -> int:
        """Return the bandwidth of what is in force, guarantees only."""
        if self.enforced is None or (
            self.enforced.backend not in reservation.GUARANTEES
        ):
            return 0
        return self.enforced.bandwidth_mcpu(self.info.vcpus)

    def run(self, at: float, interval_us: int) -> Interval:
        """Return the CPU time of an interval, if the host had enough.

        :param at: the end of the interval; the same time has the same result.
        """
        draw = random.Random('%s %d' % (self.uuid, at))
        seconds = interval_us / 1e6
        desired_us = round(
            self.load.cpus(at) * self.online_vcpus * interval_us
        )
        packets = round(
            self.load.packets_per_s * seconds * draw.uniform(0.9, 1.1)
        )
        requests = round(
            self.load.requests_per_s * seconds * draw.uniform(0.9, 1.1)
        )
        reserved_us = None
        guest_us = desired_us
        if self.enforced is not None:
            reserved_us = round(
                self.enforced.bandwidth(self.info.vcpus) * interval_us
            )
            guest_us = min(
                desired_us, self._limit_us(self.enforced, reserved_us, draw)
            )
        return Interval(
            desired_us=desired_us,
            guest_us=guest_us,
            reserved_us=reserved_us,
            direct_us=packets * 14 + requests * 38 + round(2_000 * seconds),
            shared_us=packets * 5 + requests * 3,
            packets=packets,
            requests=requests,
        )

    @staticmethod
    def _limit_us(
        enforced: reservation.Reservation,
        reserved_us: int,
        draw: random.Random,
    ) -> int:
        if enforced.backend not in reservation.GUARANTEES:
            return round(reserved_us * draw.uniform(*_QUOTA_PARTS))
        if enforced.mode is reservation.Mode.WORK_CONSERVING:
            return round(reserved_us * draw.uniform(1.02, 1.25))
        error_ppm = draw.gauss(_ERROR_MEAN_PPM, _ERROR_PPM)
        return round(reserved_us * (1 + error_ppm / 1e6))
