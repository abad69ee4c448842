# SPDX-License-Identifier: Apache-2.0

"""Styles of error figures, the paper's results, and the ends of their axes.

Lengths are in inches, errors and shares in percent.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import typing as ty

from vsched_lib.contract import profiles
from vsched_lib.presentation import error_page as pages
from vsched_lib.presentation import error_series

#: Results of the paper for Xen's schedulers, in percent; the signs are those
#: of its figure 7. SEDF: no error is beyond; Credit: one in ten is beyond.
SEDF_MAX_PCT = 9.52
CREDIT_TENTH_PCT = 36.3
#: Where those results are from.
PAPER = 'Xen in HPL-2007-25'

SHADED = 'shaded: within %g %%' % pages.NEEDED_PCT

# The palette of Okabe and Ito is safe for colour-blind readers.
_COLOURS = {
    'deadline': '#0072B2',
    'cfs': '#D55E00',
    'rtds': '#009E73',
    'credit2': '#CC79A7',
    'credit': '#B8860B',
}
_OTHER = '#444444'

#: The size of small text, in points.
SMALL = 7.5

#: The scale of errors is linear below this value, logarithmic above.
LINEAR_PCT = 0.1

#: The margins of a page.
LEFT, BOTTOM = 0.85, 0.6


def colour(one: error_series.Series) -> str:
    """Return the colour of a series: that of its backend."""
    return _COLOURS.get(one.backend, _OTHER)


def line(one: error_series.Series) -> dict[str, ty.Any]:
    return {
        'color': colour(one),
        'lw': 1.8 if one.probe is profiles.Probe.THREAD else 1.0,
        'ls': '-' if one.contenders else (0, (4, 1.5)),
    }


def key(series: Sequence[error_series.Series]) -> list[str]:
    """Return what the styles of lines mean, if there are several."""
    found = []
    if len({bool(one.contenders) for one in series}) > 1:
        found.append('dashed: alone, solid: beside hogs')
    if len({one.probe for one in series}) > 1:
        found.append('thin: in a VM')
    return found


def limits(
    series: Iterable[error_series.Series], low: float, high: float
) -> tuple[float, float]:
    """Return the ends of an axis of errors, as sizes, at least these."""
    lowest, highest = zip(*(one.extent_ppm() for one in series), strict=True)
    return (
        pages.limit(-error_series.pct(min(lowest)), low),
        pages.limit(error_series.pct(max(highest)), high),
    )


def by_period(
    series: Iterable[error_series.Series],
) -> dict[str, list[error_series.Series]]:
    found: dict[str, list[error_series.Series]] = {}
    for one in sorted(series, key=lambda one: one.period_us):
        found.setdefault(one.period, []).append(one)
    return found


def shares(series: Iterable[error_series.Series]) -> list[float]:
    return sorted(
        {
            error_series.pct(point.share_ppm)
            for one in series
            for point in one.points
        }
    )
