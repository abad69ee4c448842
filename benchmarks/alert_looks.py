# SPDX-License-Identifier: Apache-2.0

"""Whether looks at budgets between ticks make small shares exact."""

import tempfile
import typing as ty

from benchmarks import alert
from benchmarks import frame
from vsched_agent.enforcement import host_checks
from vsched_agent.profiling.error import plan
from vsched_lib.contract import profiles
from vsched_lib.model import error

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'Allocation errors with budgets checked between ticks',
    'Small shares of a CPU under ``deadline`` at a period of 10 ms, alone '
    "and among four hogs, as in :doc:`alert`: as the kernel's tick ends "
    'their budgets, and with ``[enforcement] budget_check_us`` = %d, which '
    'has them looked at when they end. The looks take up to a tenth of a '
    'CPU, which is part of what they cost; the tick of this host is what it '
    'is for both.' % host_checks.CHECK_US,
    (
        frame.Paper(
            'looks_p99_pct',
            'HPL-2007-25, SEDF',
            '0.03 % of points beyond 9.9 %, at most 9.52 % on the other side',
            'Xen 3, two CPUs, shares of 1 to 90 %',
        ),
    ),
    {
        'tick_p99_pct': 'p99 of the size of the error, the worst share from '
        '10 % on, nobody else on the CPUs, percent',
        'looks_p99_pct': 'likewise, with looks',
        'tick_contended_p99_pct': 'likewise, among four hogs, without looks',
        'looks_contended_p99_pct': 'likewise, with looks',
        'tick_small_p99_pct': 'the worst of all at a share of 5 %, without '
        'looks',
        'looks_small_p99_pct': 'likewise, with looks',
    },
    targets=(
        frame.at_most('looks_p99_pct', 2, '%', 'issue 3'),
        frame.at_most('looks_contended_p99_pct', 2, '%', 'issue 3'),
    ),
)

SHARES_PPM = tuple(share * 10_000 for share in (5, 10, 20, 30))


def run(quick: bool) -> frame.Run:
    """The same shares, first without looks and then with them."""
    windows = plan.QUICK_WINDOWS if quick else error.LONG_WINDOWS
    found: dict[str, list[profiles.ErrorPoint]] = {}
    for name, check_us in (('tick', 0), ('looks', host_checks.CHECK_US)):
        found[name] = _points(check_us, windows)
        yield from alert.variants(name + '-', found[name])
    return {
        name + kind: alert.worst(points, *which)
        for name, points in found.items()
        for kind, which in (
            ('_p99_pct', (0,)),
            ('_contended_p99_pct', (alert.CONTEND,)),
        )
    } | {
        name + '_small_p99_pct': max(
            alert.worst(points, contenders, 0, alert.FROM_PPM)
            for contenders in (0, alert.CONTEND)
        )
        for name, points in found.items()
    }


def _points(check_us: int, windows: int) -> list[profiles.ErrorPoint]:
    with tempfile.TemporaryDirectory() as folder:
        return list(
            alert.measure(
                alert.scene_of(folder, check_us),
                folder,
                alert.order(SHARES_PPM, windows),
            ).points
        )


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The p99 of each share, with looks and without."""
    axes = figure.add_subplot()
    for name, color in (('tick', 'tab:red'), ('looks', 'tab:blue')):
        for kind, line in (('alone', '--'), ('contended', '-')):
            points = sorted(
                (one['share_pct'], one['p99_pct'])
                for variant, one in record.variants.items()
                if variant.startswith(name) and variant.endswith(kind)
            )
            axes.plot(
                [share for share, _ in points],
                [size for _, size in points],
                marker='o',
                linestyle=line,
                color=color,
                label='%s, %s' % (name, kind),
            )
    axes.axhline(2.0, color='tab:green', linestyle=':', label='target')
    axes.set_xlabel('promised share, % of a CPU')
    axes.set_ylabel('p99 of |error|, %')
    axes.legend(fontsize=8)
