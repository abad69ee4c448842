# SPDX-License-Identifier: Apache-2.0

"""Draw the spread of the errors at each share: figure 6 of the paper.

Lengths are in inches, errors and shares in percent.
"""

from collections.abc import Sequence
import itertools

from matplotlib import axes as axes_
from matplotlib import figure as figures

from vsched_lib.model import error
from vsched_lib.presentation import error_page as pages
from vsched_lib.presentation import error_series
from vsched_lib.presentation import error_styles as styles

# Indices of the quantiles in a point.
_P1, _P5, _P50, _P95, _P99 = (
    error.QUANTILES_PPM.index(part)
    for part in (10_000, 50_000, 500_000, 950_000, 990_000)
)


def draw(
    series: Sequence[error_series.Series],
    lines: list[str],
    warnings: list[str],
) -> figures.Figure:
    """Draw figure 6: a panel for each backend, period and contention."""
    rows = list(dict.fromkeys((one.backend, one.period_us) for one in series))
    columns = sorted({(one.contenders, one.probe) for one in series})
    found = {
        ((one.backend, one.period_us), (one.contenders, one.probe)): one
        for one in series
    }
    width = 4.3 if len(columns) > 1 else 6.0
    height, gap = 2.2, 0.85
    page = pages.Page(
        styles.LEFT + len(columns) * (width + 0.25) + 1.7,
        len(rows) * (height + gap) + 0.25,
        'Error of CPU allocation at each promised share',
        [
            *lines,
            'dot: median · thick bar: p5 to p95 · thin bar: p1 to '
            'p99 · line: lowest to highest · %s · dashed: %s'
            % (styles.SHADED, styles.PAPER),
        ],
        warnings,
    )
    low, high = styles.limits(series, 10, 100)
    shares = styles.shares(series)
    for (row, where), (column, beside) in itertools.product(
        enumerate(rows), enumerate(columns)
    ):
        axes = page.panel(
            styles.LEFT + column * (width + 0.25),
            styles.BOTTOM + (len(rows) - 1 - row) * (height + gap),
            width,
            height,
        )
        pages.share_axis(axes, shares, row == len(rows) - 1)
        pages.error_axis(axes, 'y', styles.LINEAR_PCT, low, high)
        axes.tick_params(labelleft=not column)
        if not column:
            axes.set_ylabel('error, % of the promise')
        _references(axes, column == len(columns) - 1)
        if (where, beside) in found:
            _bars(axes, found[where, beside])
        else:
            axes.text(
                0.5,
                0.3,
                'not measured',
                color=pages.GREY,
                ha='center',
                transform=axes.transAxes,
            )
    return page.figure


def _bars(axes: axes_.Axes, one: error_series.Series) -> None:
    """Draw the spread of the errors at each share."""
    colour = styles.colour(one)
    shares = [error_series.pct(point.share_ppm) for point in one.points]
    parts = [point.quantiles_ppm for point in one.points]
    for width, ends in (
        (0.8, [(point.min_ppm, point.max_ppm) for point in one.points]),
        (2.0, [(part[_P1], part[_P99]) for part in parts]),
        (4.6, [(part[_P5], part[_P95]) for part in parts]),
    ):
        axes.vlines(
            shares,
            [error_series.pct(low) for low, _ in ends],
            [error_series.pct(high) for _, high in ends],
            colors=colour,
            linewidths=width,
        )
    axes.plot(
        shares,
        [error_series.pct(part[_P50]) for part in parts],
        linestyle='',
        marker='o',
        markersize=4.2,
        color='white',
        markeredgecolor=colour,
        markeredgewidth=1.2,
    )
    axes.text(
        0,
        1.105,
        '%s, period %s' % (one.name, one.period),
        transform=axes.transAxes,
        color=colour,
        weight='bold',
        parse_math=False,
    )
    axes.text(
        0,
        1.02,
        'worst p99 of |error|: '
        + ', '.join(
            '%s at shares %s' % (worst, which)
            for worst, which in (
                (one.worst(True), 'from 10 % up'),
                (one.worst(False), 'below'),
            )
            if worst
        ),
        transform=axes.transAxes,
        color=pages.GREY,
        size=8,
    )


def _references(axes: axes_.Axes, named: bool) -> None:
    """Draw the results of the paper as lines."""
    for level, text in (
        (styles.CREDIT_TENTH_PCT, 'Xen Credit: 10 %% beyond %g %%'),
        (styles.SEDF_MAX_PCT, 'Xen SEDF: max %g %%'),
    ):
        axes.axhline(level, color=pages.PALE, lw=0.8, ls=(0, (4, 3)), zorder=1)
        if named:
            axes.text(
                1.015,
                level,
                text % level,
                color=pages.GREY,
                size=styles.SMALL,
                va='center',
                transform=axes.get_yaxis_transform(),
            )
