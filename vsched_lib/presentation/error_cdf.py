# SPDX-License-Identifier: Apache-2.0

"""Draw how many windows err by how much: figure 7 of the paper.

Lengths are in inches, errors and shares in percent.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import math

from matplotlib import axes as axes_
from matplotlib import figure as figures

from vsched_lib.presentation import error_page as pages
from vsched_lib.presentation import error_series
from vsched_lib.presentation import error_styles as styles

#: One in ten of Credit's errors is beyond this on the negative side, and this
#: fraction of SEDF's.
_LESS_PCT = -9.9
_SEDF_LESS_PART_PCT = 0.03

#: The scale of errors is linear below this value, logarithmic above.
_LINEAR_PCT = 0.01
#: The lower end of the axis, in percent of the windows: that of the paper.
_FLOOR_PCT = 0.02
#: The upper end of that axis, its length, and the height of a name below the
#: lower end.
_CEILING_PCT = 130
_HEIGHT = 3.4
_NAME_HEIGHT = 0.19


def draw(
    series: Sequence[error_series.Series],
    lines: list[str],
    warnings: list[str],
) -> figures.Figure:
    """Draw figure 7: a panel for each period, all shares together."""
    periods = styles.by_period(series)
    names = max(map(len, periods.values()))
    height = _HEIGHT + _NAME_HEIGHT * names
    page = pages.Page(
        9.2,
        len(periods) * (height + 0.75) + 0.1,
        'How many windows err by how much',
        [
            *lines,
            ' · '.join(
                (
                    'all shares together',
                    'left: got less, right: got more',
                    *styles.key(series),
                    styles.SHADED,
                    'diamonds: ' + styles.PAPER,
                )
            ),
        ],
        warnings,
    )
    low, high = styles.limits(series, 100, 100)
    step = (_FLOOR_PCT / _CEILING_PCT) ** (_NAME_HEIGHT / _HEIGHT)
    for row, (period, group) in enumerate(periods.items()):
        axes = page.panel(
            styles.LEFT,
            styles.BOTTOM + (len(periods) - 1 - row) * (height + 0.75),
            8.1,
            height,
        )
        pages.error_axis(axes, 'x', _LINEAR_PCT, low, high)
        axes.set_xlabel('error of a window, % of the promise')
        axes.set_ylabel('windows beyond, %')
        axes.set_yscale('log')
        axes.set_ylim(_FLOOR_PCT * step ** (names + 0.4), _CEILING_PCT)
        pages.ticks(axes.yaxis, [0.1, 1, 10, 100])
        axes.axhline(1, color=pages.PALE, lw=0.6, zorder=1)
        axes.text(
            0.997,
            1.08,
            '1 window in 100',
            size=styles.SMALL,
            ha='right',
            color=pages.GREY,
            transform=axes.get_yaxis_transform(),
        )
        axes.text(
            0,
            1.02,
            'period ' + period,
            weight='bold',
            transform=axes.transAxes,
        )
        _marks(axes)
        _tails(axes, group, step)
    return page.figure


def _marks(axes: axes_.Axes) -> None:
    """Draw the results of the paper as points."""
    for x, y, text in (
        (styles.CREDIT_TENTH_PCT, 10, 'Xen\nCredit'),
        (_LESS_PCT, 10, 'Xen\nCredit'),
        (styles.SEDF_MAX_PCT, _SEDF_LESS_PART_PCT, 'Xen\nSEDF'),
        (_LESS_PCT, _SEDF_LESS_PART_PCT, 'Xen\nSEDF'),
    ):
        axes.plot([x], [y], marker='D', markersize=4, color=pages.PALE)
        axes.annotate(
            text,
            (x, y),
            (math.copysign(6, x), 0),
            size=styles.SMALL,
            textcoords='offset points',
            color=pages.GREY,
            va='center',
            ha='left' if x > 0 else 'right',
        )


def _tails(
    axes: axes_.Axes, group: Iterable[error_series.Series], step: float
) -> None:
    """Draw both tails of each series, its name below the longer one.

    The names are ordered by the ends of the tails: the farther out a tail
    ends, the lower is its name. A name extends towards the middle, so that no
    line to another name crosses it.
    """
    ends = []
    for one in group:
        found = [
            tail
            for tail in (
                error_series.beyond(one.points, sign) for sign in (-1, 1)
            )
            if tail
        ]
        for tail in found:
            axes.plot(*zip(*tail, strict=True), **styles.line(one))
        if found:
            ends.append(
                (
                    max(
                        (tail[-1] for tail in found),
                        key=lambda end: abs(end[0]),
                    ),
                    one,
                )
            )
    ends.sort(key=lambda end: abs(end[0][0]))
    for row, ((x, y), one) in enumerate(ends):
        colour = styles.colour(one)
        level = _FLOOR_PCT * step ** (row + 0.6)
        axes.plot([x, x], [y, level], color=colour, lw=0.7, ls=':')
        axes.annotate(
            '%s: %s to %s'
            % (one.name, *map(error_series.percent, one.extent_ppm())),
            (x, level),
            (-3 if x > 0 else 3, 0),
            color=colour,
            size=8.5,
            textcoords='offset points',
            va='center',
            parse_math=False,
            ha='right' if x > 0 else 'left',
        )
