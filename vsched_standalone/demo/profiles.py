# SPDX-License-Identifier: Apache-2.0

"""Profiles of simulated hosts: errors and I/O costs made from random numbers.

They have the form of measured ones, and their notes call them simulated.
"""

import random
import uuid

from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.model import overhead

KERNEL = '6.1.0-simulated'
TICK_US = 4_000

_NOTE = 'simulated: no host was measured'
_SHARES_PPM = (50_000, 100_000, 200_000, 400_000, 600_000, 800_000)
_PERIODS_US = (10_000, 20_000)
_CONTENDERS = (0, 4)
_WINDOWS = 180

#: Mean CPU time of one event, in nanoseconds.
_COSTS_NS = {
    'net_rx': 11_000.0,
    'net_tx': 19_000.0,
    'disk_read': 38_000.0,
    'disk_write': 41_000.0,
    overhead.WAKEUPS: 9_000.0,
    overhead.IDLE: 2_500_000.0,
}


def error_profile(
    draw: random.Random, version: int, cpus: int, at: float
) -> profiles.ErrorProfile:
    """Return an error profile that ends at a time.

    :param version: of the host's error profiles.
    """
    quality = draw.uniform(0.6, 2.5)
    points = [
        _point(draw, backend, period_us, contenders, share_ppm, quality)
        for backend in ('deadline', 'cfs')
        for period_us in _PERIODS_US
        for contenders in _CONTENDERS
        for share_ppm in _SHARES_PPM
    ]
    return profiles.ErrorProfile(
        uuid=str(uuid.uuid4()),
        version=version,
        source=profiles.ProfileSource.BENCHMARK,
        started_at=at - len(points) * _WINDOWS,
        finished_at=at,
        kernel=KERNEL,
        tick_us=TICK_US,
        cpus=cpus,
        load=round(draw.uniform(0.1, 0.6), 2),
        quick=False,
        complete=True,
        points=tuple(points),
        notes=(_NOTE,),
    )


def _point(
    draw: random.Random,
    backend: str,
    period_us: int,
    contenders: int,
    share_ppm: int,
    quality: float,
) -> profiles.ErrorPoint:
    # Errors are larger for small shares, as a tick is a larger part of them.
    width_ppm = 60_000_000 / (share_ppm + 30_000) * quality
    if backend == 'deadline':
        found = [round(draw.gauss(-200, width_ppm)) for _ in range(_WINDOWS)]
    elif contenders:
        found = [
            round(-500_000 * draw.betavariate(2, 3)) for _ in range(_WINDOWS)
        ]
    else:
        found = [
            round(draw.gauss(800, 12 * width_ppm)) for _ in range(_WINDOWS)
        ]
    return profiles.ErrorPoint.of(
        error.statistics(found),
        backend=backend,
        period_us=period_us,
        share_ppm=share_ppm,
        contenders=contenders,
        probe=profiles.Probe.THREAD,
        window_us=error.WINDOW_US,
    )


def overhead_profile(
    draw: random.Random, version: int, cpus: int, at: float
) -> profiles.OverheadProfile:
    """Return an overhead profile that ends at a time.

    :param version: of the host's overhead profiles.
    """
    costs = {
        term: cost_ns * draw.uniform(0.85, 1.2)
        for term, cost_ns in _COSTS_NS.items()
    }
    return profiles.OverheadProfile(
        uuid=str(uuid.uuid4()),
        version=version,
        source=profiles.ProfileSource.BENCHMARK,
        started_at=at - 240,
        finished_at=at,
        kernel=KERNEL,
        tick_us=TICK_US,
        cpus=cpus,
        load=round(draw.uniform(0.1, 0.6), 2),
        quick=False,
        complete=True,
        good=True,
        r2=round(draw.uniform(0.95, 0.995), 4),
        residual_ns=round(draw.uniform(4e5, 2e6)),
        n=120,
        prices=tuple(
            profiles.OverheadPrice(term, round(cost_ns), round(cost_ns / 40))
            for term, cost_ns in costs.items()
        ),
        points=tuple(
            _load(draw, experiment, costs)
            for experiment in ('net-rx', 'net-tx', 'disk-read', 'disk-write')
        ),
        notes=(_NOTE,),
    )


def _load(
    draw: random.Random, experiment: str, costs: dict[str, float]
) -> profiles.OverheadPoint:
    term = experiment.replace('-', '_')
    rate = 2_000 if term.startswith('net') else 400
    seconds = 10
    events = rate * seconds
    predicted_us = round(
        (costs[term] * events + costs[overhead.WAKEUPS] * events) / 1_000
        + costs[overhead.IDLE] * seconds / 1_000
    )
    direct_us = round(predicted_us * draw.uniform(0.8, 0.86))
    return profiles.OverheadPoint(
        experiment=experiment,
        rate=rate,
        burst=1,
        size_bytes=64 if term.startswith('net') else 4_096,
        interval_us=seconds * 1_000_000,
        net_rx=events if term == 'net_rx' else 0,
        net_tx=events if term == 'net_tx' else 0,
        disk_read=events if term == 'disk_read' else 0,
        disk_write=events if term == 'disk_write' else 0,
        wakeups=events,
        direct_us=direct_us,
        shared_us=round(predicted_us * draw.uniform(0.13, 0.16)),
        predicted_us=predicted_us,
    )
