# SPDX-License-Identifier: Apache-2.0

"""Draw the figures of an error profile.

Lengths are in inches, errors and shares in percent.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import itertools
import math
import typing as ty

from matplotlib import axes as axes_
from matplotlib import figure as figures

from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.presentation import error_page as pages
from vsched_lib.presentation import error_series

#: Results of the paper for Xen's schedulers, in percent; the signs are those
#: of its figure 7. SEDF: no error is beyond; Credit: one in ten is beyond.
SEDF_MAX_PCT = 9.52
CREDIT_TENTH_PCT = 36.3
#: One in ten of Credit's errors is beyond this on the negative side, and this
#: fraction of SEDF's.
LESS_PCT = -9.9
SEDF_LESS_PART_PCT = 0.03

_pct = error_series.pct

_PAPER = 'Xen in HPL-2007-25'
_SHADED = 'shaded: within %g %%' % pages.NEEDED_PCT

# The palette of Okabe and Ito is safe for colour-blind readers.
_COLOURS = {
    'deadline': '#0072B2',
    'cfs': '#D55E00',
    'rtds': '#009E73',
    'credit2': '#CC79A7',
    'credit': '#B8860B',
}
_OTHER = '#444444'

_SMALL = 7.5

#: The scale of errors is linear below this value, logarithmic above.
_LINEAR_PCT = 0.1
_CDF_LINEAR_PCT = 0.01

#: The lower end of the CDF's axis, in percent of the windows: that of the
#: paper.
_FLOOR_PCT = 0.02
#: The upper end of that axis, its length, and the height of a name below the
#: lower end.
_CEILING_PCT = 130
_CDF_HEIGHT = 3.4
_NAME_HEIGHT = 0.19

_LEFT, _BOTTOM = 0.85, 0.6

# Indices of the quantiles in a point.
_P1, _P5, _P50, _P95, _P99 = (
    error.QUANTILES_PPM.index(part)
    for part in (10_000, 50_000, 500_000, 950_000, 990_000)
)


def draw(
    profile: profiles.ErrorProfile, name: str, host: str
) -> figures.Figure:
    """Return a figure.

    :param name: ``error``, ``cdf`` or ``mean``.
    """
    series = error_series.series(profile.points)
    lines = error_series.subtitles(profile, host)
    warnings = error_series.warnings(profile)
    if not series:
        page = pages.Page(8, 1.5, 'Error of CPU allocation', lines, warnings)
        page.figure.text(
            0.5,
            0.75 / page.height,
            'This profile has no points to draw.',
            size=11,
            color=pages.GREY,
            ha='center',
            va='center',
        )
        return page.figure
    return _DRAWERS[name](series, lines, warnings)


def _error(
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
        _LEFT + len(columns) * (width + 0.25) + 1.7,
        len(rows) * (height + gap) + 0.25,
        'Error of CPU allocation at each promised share',
        [
            *lines,
            'dot: median · thick bar: p5 to p95 · thin bar: p1 to '
            'p99 · line: lowest to highest · %s · dashed: %s'
            % (_SHADED, _PAPER),
        ],
        warnings,
    )
    low, high = _limits(series, 10, 100)
    shares = _shares(series)
    for (row, where), (column, beside) in itertools.product(
        enumerate(rows), enumerate(columns)
    ):
        axes = page.panel(
            _LEFT + column * (width + 0.25),
            _BOTTOM + (len(rows) - 1 - row) * (height + gap),
            width,
            height,
        )
        pages.share_axis(axes, shares, row == len(rows) - 1)
        pages.error_axis(axes, 'y', _LINEAR_PCT, low, high)
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
    colour = _COLOURS.get(one.backend, _OTHER)
    shares = [_pct(point.share_ppm) for point in one.points]
    parts = [point.quantiles_ppm for point in one.points]
    for width, ends in (
        (0.8, [(point.min_ppm, point.max_ppm) for point in one.points]),
        (2.0, [(part[_P1], part[_P99]) for part in parts]),
        (4.6, [(part[_P5], part[_P95]) for part in parts]),
    ):
        axes.vlines(
            shares,
            [_pct(low) for low, _ in ends],
            [_pct(high) for _, high in ends],
            colors=colour,
            linewidths=width,
        )
    axes.plot(
        shares,
        [_pct(part[_P50]) for part in parts],
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
        (CREDIT_TENTH_PCT, 'Xen Credit: 10 %% beyond %g %%'),
        (SEDF_MAX_PCT, 'Xen SEDF: max %g %%'),
    ):
        axes.axhline(level, color=pages.PALE, lw=0.8, ls=(0, (4, 3)), zorder=1)
        if named:
            axes.text(
                1.015,
                level,
                text % level,
                color=pages.GREY,
                size=_SMALL,
                va='center',
                transform=axes.get_yaxis_transform(),
            )


def _cdf(
    series: Sequence[error_series.Series],
    lines: list[str],
    warnings: list[str],
) -> figures.Figure:
    """Draw figure 7: a panel for each period, all shares together."""
    periods = _by_period(series)
    names = max(map(len, periods.values()))
    height = _CDF_HEIGHT + _NAME_HEIGHT * names
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
                    *_key(series),
                    _SHADED,
                    'diamonds: ' + _PAPER,
                )
            ),
        ],
        warnings,
    )
    low, high = _limits(series, 100, 100)
    step = (_FLOOR_PCT / _CEILING_PCT) ** (_NAME_HEIGHT / _CDF_HEIGHT)
    for row, (period, group) in enumerate(periods.items()):
        axes = page.panel(
            _LEFT,
            _BOTTOM + (len(periods) - 1 - row) * (height + 0.75),
            8.1,
            height,
        )
        pages.error_axis(axes, 'x', _CDF_LINEAR_PCT, low, high)
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
            size=_SMALL,
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
        (CREDIT_TENTH_PCT, 10, 'Xen\nCredit'),
        (LESS_PCT, 10, 'Xen\nCredit'),
        (SEDF_MAX_PCT, SEDF_LESS_PART_PCT, 'Xen\nSEDF'),
        (LESS_PCT, SEDF_LESS_PART_PCT, 'Xen\nSEDF'),
    ):
        axes.plot([x], [y], marker='D', markersize=4, color=pages.PALE)
        axes.annotate(
            text,
            (x, y),
            (math.copysign(6, x), 0),
            size=_SMALL,
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
            axes.plot(*zip(*tail, strict=True), **_line(one))
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
        colour = _COLOURS.get(one.backend, _OTHER)
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


def _mean(
    series: Sequence[error_series.Series],
    lines: list[str],
    warnings: list[str],
) -> figures.Figure:
    """Draw figure 8: a panel for each period."""
    periods = _by_period(series)
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
                    *_key(series),
                    _SHADED,
                )
            ),
        ],
        warnings,
    )
    means = [
        _pct(point.long_mean_ppm) for one in series for point in one.points
    ]
    low, high = pages.limit(-min(means), 10), pages.limit(max(means), 10)
    shares = _shares(series)
    for row, (period, group) in enumerate(periods.items()):
        axes = page.panel(
            _LEFT,
            _BOTTOM + (len(periods) - 1 - row) * (height + 0.75),
            6.1,
            height,
        )
        pages.share_axis(axes, shares, row == len(periods) - 1)
        pages.error_axis(axes, 'y', _LINEAR_PCT, low, high)
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
                [_pct(point.share_ppm) for point in one.points],
                [_pct(point.long_mean_ppm) for point in one.points],
                marker='o',
                markersize=3.5,
                **_line(one),
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
            (_pct(last.share_ppm), _pct(last.long_mean_ppm))
        )
        ends.append((float(x), float(y), one))
    ends.sort(key=lambda end: end[1])
    for (x, y, one), height in zip(
        ends, pages.spread([y for _, y, _ in ends], gap), strict=True
    ):
        colour = _COLOURS.get(one.backend, _OTHER)
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


def _line(one: error_series.Series) -> dict[str, ty.Any]:
    return {
        'color': _COLOURS.get(one.backend, _OTHER),
        'lw': 1.8 if one.probe is profiles.Probe.THREAD else 1.0,
        'ls': '-' if one.contenders else (0, (4, 1.5)),
    }


def _key(series: Sequence[error_series.Series]) -> list[str]:
    """Return what the styles of lines mean, if there are several."""
    found = []
    if len({bool(one.contenders) for one in series}) > 1:
        found.append('dashed: alone, solid: beside hogs')
    if len({one.probe for one in series}) > 1:
        found.append('thin: in a VM')
    return found


def _limits(
    series: Iterable[error_series.Series], low: float, high: float
) -> tuple[float, float]:
    """Return the ends of an axis of errors, as sizes, at least these."""
    lowest, highest = zip(*(one.extent_ppm() for one in series), strict=True)
    return (
        pages.limit(-_pct(min(lowest)), low),
        pages.limit(_pct(max(highest)), high),
    )


def _by_period(
    series: Iterable[error_series.Series],
) -> dict[str, list[error_series.Series]]:
    found: dict[str, list[error_series.Series]] = {}
    for one in sorted(series, key=lambda one: one.period_us):
        found.setdefault(one.period, []).append(one)
    return found


def _shares(series: Iterable[error_series.Series]) -> list[float]:
    return sorted(
        {_pct(point.share_ppm) for one in series for point in one.points}
    )


_DRAWERS: dict[
    str,
    ty.Callable[
        [Sequence[error_series.Series], list[str], list[str]], figures.Figure
    ],
] = {'error': _error, 'cdf': _cdf, 'mean': _mean}
