# SPDX-License-Identifier: Apache-2.0

"""Whether a margin keeps errors within a flavor's bound."""

import tempfile
import typing as ty

from benchmarks import alert
from benchmarks import frame
from vsched_agent.profiling.error import plan
from vsched_lib.model import error

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'Allocation errors with and without margins',
    'Small shares of a CPU under ``deadline`` at a period of 10 ms, among '
    'four hogs, as in :doc:`alert`. Those whose errors fall short of the '
    'promise by more than 2 % in one second of a hundred are given the '
    'margin that the agent grants for ``max_alloc_error_pct`` = 2, and '
    'measured again, against what was promised. Budgets are left to the '
    "kernel's tick. The margin rests on the "
    'shares around each as well: which of them err most depends on how '
    "budgets fall on the kernel's ticks, and differs from run to run.",
    (),
    {
        'raw_p99_pct': 'p99 of what is missing of the promise, the worst '
        'share '
        'from 5 % on, percent',
        'inflated_p99_pct': 'likewise, after the margin',
        'inflated_from_10_p99_pct': 'likewise, the worst share from 10 % on',
        'inflated_shares': 'how many shares were given a margin',
        'within_bound': 'how many of them keep the bound then',
        'largest_margin_pct': 'the largest margin, percent of the runtime',
    },
    targets=(
        frame.at_most('inflated_p99_pct', 2, '%', 'issue 3'),
        frame.at_most('inflated_from_10_p99_pct', 2, '%', 'issue 3'),
    ),
)

INFLATE_FROM_PPM = 50_000
SHARES_PPM = tuple(
    share * 10_000 for share in (4, 5, 6, 7, 8, 9, 10, 12, 15, 20)
)


def run(quick: bool) -> frame.Run:
    """The shares as they are, then with their margins."""
    windows = plan.QUICK_WINDOWS if quick else error.LONG_WINDOWS
    with tempfile.TemporaryDirectory() as folder:
        scene = alert.scene_of(folder)
        profile = alert.measure(
            scene, folder, alert.order(SHARES_PPM, windows, alone=False)
        )
        yield from alert.variants('', profile.points)
        again, raw, granted = alert.inflated(
            scene, folder, profile, windows, INFLATE_FROM_PPM
        )
        yield from alert.variants('inflated-', again)
    return {
        'raw_p99_pct': alert.short(raw),
        'inflated_p99_pct': alert.short(again),
        'inflated_from_10_p99_pct': alert.short(
            point for point in again if point.share_ppm >= alert.FROM_PPM
        ),
        'inflated_shares': len(again),
        'within_bound': sum(
            alert.short([point]) <= alert.BOUND_PPM / 10_000 for point in again
        ),
        'largest_margin_pct': max(
            (
                round(
                    100 * float(one.utilisation) / (share_ppm / error.PPM)
                    - 100,
                    2,
                )
                for share_ppm, one in granted.items()
            ),
            default=0.0,
        ),
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """What is missing, before and after."""
    axes = figure.add_subplot()
    for prefix, label, color in (
        ('', 'as promised', 'tab:red'),
        ('inflated-', 'with its margin', 'tab:blue'),
    ):
        found = sorted(
            (one['share_pct'], -one['p1_signed_pct'])
            for name, one in record.variants.items()
            if name.startswith(prefix + 'deadline')
        )
        axes.plot(
            [share for share, _ in found],
            [missing for _, missing in found],
            marker='o',
            color=color,
            label=label,
        )
    axes.axhline(2.0, color='tab:green', linestyle=':', label='bound')
    axes.set_xlabel('promised share, % of a CPU')
    axes.set_ylabel('missing in 1 second of 100, %')
    axes.legend(fontsize=8)
