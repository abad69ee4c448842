# SPDX-License-Identifier: Apache-2.0

"""Draw the mean error at each share: figure 8 of the paper.

Lengths are in inches, errors and shares in percent.
"""

from collections.abc import Iterable
from collections.abc import Sequence

from matplotlib import axes as axes_
from matplotlib import figure as figures

from vsched_lib.model import error
from vsched_lib.presentation import error_page as pages
from vsched_lib.presentation import error_series
from vsched_lib.presentation import error_styles as styles


def draw(
    series: Sequence[error_series.Series],
    lines: list[str],
    warnings: list[str],
) -> figures.Figure:
    """Draw figure 8: a panel for each period."""
    periods = styles.by_period(series)
    height = max(3.0, 0.2 * max(map(len, periods.values())))
    page = pages.Page(
        9.2,
        len(periods) * (height + 0.75) + 0.1,
        'Mean error at each promised share',
        [
            *lines,
            ' · '.join(
                (
                    'dot: all windows of a share together (in HPL-2007-25: '
                    '%d of 1 s)' % error.LONG_WINDOWS,
                    *styles.key(series),
                    styles.SHADED,
                )
            ),
        ],
        warnings,
    )
    means = [
        error_series.pct(point.long_mean_ppm)
        for one in series
        for point in one.points
    ]
    low, high = pages.limit(-min(means), 10), pages.limit(max(means), 10)
    shares = styles.shares(series)
    for row, (period, group) in enumerate(periods.items()):
        axes = page.panel(
            styles.LEFT,
            styles.BOTTOM + (len(periods) - 1 - row) * (height + 0.75),
            6.1,
            height,
        )
        pages.share_axis(axes, shares, row == len(periods) - 1)
        pages.error_axis(axes, 'y', styles.LINEAR_PCT, low, high)
        axes.set_ylabel('mean error, % of the promise')
        axes.text(
            0,
            1.02,
            'period ' + period,
            weight='bold',
            transform=axes.transAxes,
        )
        for one in group:
            axes.plot(
                [error_series.pct(point.share_ppm) for point in one.points],
                [
                    error_series.pct(point.long_mean_ppm)
                    for point in one.points
                ],
                marker='o',
                markersize=3.5,
                **styles.line(one),
            )
        _names(axes, group, 0.2 / height)
    return page.figure


def _names(
    axes: axes_.Axes, group: Iterable[error_series.Series], gap: float
) -> None:
    """Draw the name of each line right of its last point, without overlap.

    :param gap: between two names, as a fraction of the axis.
    """
    place = axes.transData + axes.transAxes.inverted()
    ends = []
    for one in group:
        last = one.points[-1]
        x, y = place.transform(
            (
                error_series.pct(last.share_ppm),
                error_series.pct(last.long_mean_ppm),
            )
        )
        ends.append((float(x), float(y), one))
    ends.sort(key=lambda end: end[1])
    for (x, y, one), height in zip(
        ends, pages.spread([y for _, y, _ in ends], gap), strict=True
    ):
        colour = styles.colour(one)
        axes.plot(
            [x + 0.01, 1.0, 1.03],
            [y, y, height],
            color=colour,
            lw=0.6,
            ls=':',
            transform=axes.transAxes,
            clip_on=False,
        )
        axes.text(
            1.035,
            height,
            one.name,
            color=colour,
            va='center',
            transform=axes.transAxes,
            parse_math=False,
        )
