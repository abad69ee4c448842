# SPDX-License-Identifier: Apache-2.0

"""Made-up error profiles that look like measured ones."""

import random

from vsched_lib.contract import profiles
from vsched_lib.model import error

TIGHT, LOOSE, STARVED = 'tight', 'loose', 'starved'


def samples(shape, share_ppm, count, seed=0):
    """Errors in ppm as a scheduler of this kind would make them.

    :param shape: ``tight`` within some 0.5 %, ``loose`` within some 5 %,
        ``starved`` from -60 to 5 %.
    """
    draw = random.Random('%s %d %d' % (shape, share_ppm, seed))
    small = 100_000 / (share_ppm + 30_000)
    if shape == TIGHT:
        return [
            round(
                draw.gauss(-200, 500 * small)
                - (draw.random() < 0.01) * draw.expovariate(1 / 3_000)
            )
            for _ in range(count)
        ]
    if shape == LOOSE:
        return [round(draw.gauss(1_000, 8_000 * small)) for _ in range(count)]
    return [
        round(
            -600_000 * draw.betavariate(2, 2 * small) + 50_000 * draw.random()
        )
        for _ in range(count)
    ]


def point(found, **changes):
    """A point from errors in ppm."""
    return profiles.ErrorPoint.of(
        error.statistics(found),
        **{
            'backend': 'deadline',
            'period_us': 10_000,
            'share_ppm': 200_000,
            'contenders': 0,
            'probe': profiles.Probe.THREAD,
            'window_us': error.WINDOW_US,
            **changes,
        },
    )


def profile(points, **changes):
    """A profile with these points."""
    return profiles.ErrorProfile(
        **{
            'uuid': '5ab0c8de-5d3e-4f0e-8c2e-3f8a2a0a6f11',
            'version': 3,
            'source': profiles.ProfileSource.BENCHMARK,
            'started_at': 1_760_000_000.0,
            'finished_at': 1_760_012_960.0,
            'kernel': '6.1.0-18-amd64',
            'tick_us': 4_000,
            'cpus': 2,
            'load': 0.3,
            'quick': False,
            'complete': True,
            'points': tuple(points),
            **changes,
        }
    )


def full(
    windows=180,
    periods_us=(10_000,),
    contenders=(0, 4),
    shares_ppm=error.PAPER_SHARES_PPM,
    backends=('deadline', 'cfs'),
    **changes,
):
    """Every point of a whole run: ``cfs`` starves among hogs."""
    return profile(
        [
            point(
                samples(
                    TIGHT
                    if backend == 'deadline'
                    else STARVED
                    if hogs
                    else LOOSE,
                    share_ppm,
                    windows,
                    period_us + hogs,
                ),
                backend=backend,
                period_us=period_us,
                contenders=hogs,
                share_ppm=share_ppm,
            )
            for backend in backends
            for period_us in periods_us
            for hogs in contenders
            for share_ppm in shares_ppm
        ],
        **changes,
    )
