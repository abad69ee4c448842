# SPDX-License-Identifier: Apache-2.0

"""What I/O a calibration VM does while its cost is measured.

Four experiments, as in Govindan et al. (VEE 2007, section 3.3), and idle
time between them. Each is made at several rates, one by one and in bursts,
with small and with large events: what comes in bursts costs less, and only
wakeups show by how much.
"""

import dataclasses
import enum
import math
import random
import typing as ty


class Experiment(enum.StrEnum):
    """What is moved, from the guest's point of view."""

    IDLE = 'idle'
    NET_RX = 'net-rx'
    NET_TX = 'net-tx'
    DISK_READ = 'disk-read'
    DISK_WRITE = 'disk-write'


NETWORK = frozenset((Experiment.NET_RX, Experiment.NET_TX))


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """Packets or blocks at a rate.

    :param rate: of them a second.
    :param burst: how many at once.
    :param size_bytes: of each.
    """

    experiment: Experiment
    rate: int = 0
    burst: int = 1
    size_bytes: int = 0

    @property
    def key(self) -> str:
        """Names the load in a run's file."""
        return '%s %d %d %d' % (
            self.experiment,
            self.rate,
            self.burst,
            self.size_bytes,
        )

    def __str__(self) -> str:
        if self.experiment is Experiment.IDLE:
            return 'idle'
        return '%s, %d a second of %d bytes%s' % (
            self.experiment,
            self.rate,
            self.size_bytes,
            ' in bursts of %d' % self.burst if self.burst > 1 else '',
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    :param window_s: how long each load is looked at.
    :param idle: how often idleness is.
    """

    net_rates: tuple[int, ...] = (250, 1000, 2500)
    net_bursts: tuple[int, ...] = (1, 6, 24)
    net_sizes: tuple[int, ...] = (64, 1400)
    disk_rates: tuple[int, ...] = (100, 300, 900)
    disk_bursts: tuple[int, ...] = (1, 8)
    disk_sizes: tuple[int, ...] = (4096, 65536)
    window_s: float = 3.0
    idle: int = 4

    def to_dict(self) -> dict[str, ty.Any]:
        """The plan as JSON types."""
        return dataclasses.asdict(self)


FULL = Plan()
QUICK = Plan(
    net_rates=(300, 2000),
    net_bursts=(1, 12),
    net_sizes=(500,),
    disk_rates=(100, 600),
    disk_sizes=(4096,),
    window_s=1.5,
    idle=2,
)

#: Before each look: the load gets going, and the one before ends.
WARM_UP_S = 0.7
#: For starting and ending a load, about.
_CHANGE_S = 0.4
#: Until the VM is up, about.
_BOOT_S = 15.0


def points(plan: Plan) -> list[tuple[str, Load]]:
    """Every load of a run with its key, in the order they are made.

    It is a shuffled one, always the same: what drifts meanwhile, such as
    the speed of a CPU that others use too, must not look like a price.
    """
    found = [
        (load.key, load)
        for load in (
            Load(experiment, rate, burst, size)
            for experiments, rates, bursts, sizes in (
                (
                    sorted(NETWORK),
                    plan.net_rates,
                    plan.net_bursts,
                    plan.net_sizes,
                ),
                (
                    (Experiment.DISK_READ, Experiment.DISK_WRITE),
                    plan.disk_rates,
                    plan.disk_bursts,
                    plan.disk_sizes,
                ),
            )
            for experiment in experiments
            for rate in rates
            for burst in bursts
            for size in sizes
        )
    ]
    found += [
        ('%s #%d' % (Experiment.IDLE, number), Load(Experiment.IDLE))
        for number in range(plan.idle)
    ]
    random.Random(1).shuffle(found)
    return found


def seconds(plan: Plan) -> int:
    """How long a run takes, about."""
    return math.ceil(
        _BOOT_S + len(points(plan)) * (plan.window_s + WARM_UP_S + _CHANGE_S)
    )
