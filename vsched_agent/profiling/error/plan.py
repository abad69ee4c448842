# SPDX-License-Identifier: Apache-2.0

"""What a run measures, and what of it at once."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import math
import typing as ty

from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.model import reservation

Backend = reservation.Backend

#: A quick run's shares, in ppm, and its windows a point.
QUICK_SHARES_PPM = (10_000, 50_000, 100_000, 300_000, 600_000, 900_000)
QUICK_WINDOWS = 6
#: The time a point needs beyond its windows, in seconds.
WARM_UP_S = 1.0
#: The share of threads that are reserved and not measured, in ppm of a CPU.
COMPANION_PPM = 10_000
#: The period that ALERT gave to SEDF.
PAPER_PERIOD_US = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """What a run is to measure.

    :param shares_ppm: what is promised, in ppm of a CPU.
    :param backends: that enforce it.
    :param periods_us: under which periods.
    :param windows: looks of a second at each point.
    :param contend: hogs outside of the reservations in the second half of
        the run; 0 leaves that half out.
    :param in_guest: a calibration VM's vCPU is given the share, in place of
        a thread.
    :param quick: a short run.
    :param alone: the first half, without hogs, is measured as well.
    :param threads: reserved threads of the host at each contended point of a
        backend that guarantees. Those that are not measured have a small
        share each.
    :raises ValueError: naming what is wrong and what is accepted.
    """

    backends: tuple[Backend, ...]
    shares_ppm: tuple[int, ...] = error.PAPER_SHARES_PPM
    periods_us: tuple[int, ...] = (PAPER_PERIOD_US,)
    windows: int = error.LONG_WINDOWS
    contend: int = 4
    in_guest: bool = False
    quick: bool = False
    alone: bool = True
    threads: int = 1

    def __post_init__(self) -> None:
        for name, values, low, high in (
            ('share', self.shares_ppm, 1_000, error.PPM),
            ('period', self.periods_us, 1_000, 1_000_000),
            ('number of windows', (self.windows,), 1, 3600),
            ('number of contending hogs', (self.contend,), 0, 256),
            ('number of reserved threads', (self.threads,), 1, 256),
        ):
            for value in values:
                if not low <= value <= high:
                    raise ValueError(
                        '%s: %d is outside %d..%d' % (name, value, low, high)
                    )
        if not (self.shares_ppm and self.periods_us and self.backends):
            raise ValueError(
                'a run needs a share, a period and a backend at least'
            )

    def to_dict(self) -> dict[str, ty.Any]:
        """The order as JSON types."""
        return {
            **dataclasses.asdict(self),
            'backends': [str(name) for name in self.backends],
            'shares_ppm': list(self.shares_ppm),
            'periods_us': list(self.periods_us),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """One point of a run.

    :param contenders: hogs outside of the reservation.
    """

    backend: Backend
    period_us: int
    share_ppm: int
    contenders: int

    @property
    def promise(self) -> reservation.Reservation:
        """The reservation that the point is about.

        Its runtime is a whole number of microseconds, so that its share may
        differ from the one asked for by less than one in a period.
        """
        return reservation.Reservation(
            max(1, round(self.share_ppm * self.period_us / error.PPM)),
            self.period_us,
            reservation.Mode.CAPPED,
            self.backend,
        )

    @property
    def key(self) -> str:
        """Names the point in a run's file."""
        return '%s %d %d %d' % (
            self.backend,
            self.period_us,
            self.share_ppm,
            self.contenders,
        )

    def where(self, probe: profiles.Probe) -> dict[str, ty.Any]:
        """The fields of a point before its figures."""
        return {
            'backend': str(self.backend),
            'period_us': self.period_us,
            'share_ppm': self.share_ppm,
            'contenders': self.contenders,
            'probe': probe,
            'window_us': error.WINDOW_US,
        }


def tasks(order: Order) -> list[Task]:
    """Every point of a run, the uncontended ones first."""
    modes = [0] if order.alone or not order.contend else []
    if order.contend:
        modes.append(order.contend)
    return [
        Task(backend, period_us, share_ppm, contenders)
        for contenders in modes
        for backend in order.backends
        for period_us in order.periods_us
        for share_ppm in order.shares_ppm
    ]


def slots(
    todo: Iterable[Task], cpus: int, free_ppm: int
) -> tuple[list[tuple[Task, ...]], list[Task]]:
    """Which points are measured at once.

    No more than is free, so that nobody else's promise stands in the way. A
    large share goes with small ones. Alone, and under a backend that
    guarantees nothing, as many as there are CPUs, so that no probe takes
    another's time. Among contenders as many probes of a backend that
    guarantees as can not make each other late (Goossens, Funk and Baruah:
    the sum is at most m - (m - 1) times the largest).

    :param cpus: online; 1 measures one point after the other.
    :param free_ppm: what nobody was promised, in ppm of a CPU.
    :returns: the slots, and the points for which there is no room.
    """
    groups: dict[tuple[str, int, int], list[Task]] = {}
    tight = []
    for task in todo:
        if task.share_ppm > free_ppm:
            tight.append(task)
        else:
            groups.setdefault(
                (task.backend, task.period_us, task.contenders), []
            ).append(task)
    found = []
    for group in groups.values():
        left = sorted(group, key=lambda task: task.share_ppm)
        packed = (
            cpus > 1
            and group[0].contenders > 0
            and (group[0].backend in reservation.GUARANTEES)
        )
        while left:
            slot = [left.pop()]
            largest_ppm = slot[0].share_ppm
            room_ppm = free_ppm - largest_ppm
            if packed:
                room_ppm -= (cpus - 1) * largest_ppm
            while (
                left
                and left[0].share_ppm <= room_ppm
                and (packed or len(slot) < cpus)
            ):
                slot.append(left.pop(0))
                room_ppm -= slot[-1].share_ppm
            found.append(tuple(slot))
    return found, tight


def seconds(order: Order, planned: Sequence[Sequence[Task]]) -> int:
    """How long a plan takes, about."""
    return math.ceil(len(planned) * (order.windows + WARM_UP_S))
