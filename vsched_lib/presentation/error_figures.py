# SPDX-License-Identifier: Apache-2.0

"""Draw the figures of an error profile."""

from collections.abc import Sequence
import typing as ty

from matplotlib import figure as figures

from vsched_lib.contract import profiles
from vsched_lib.presentation import error_cdf
from vsched_lib.presentation import error_mean
from vsched_lib.presentation import error_page as pages
from vsched_lib.presentation import error_series
from vsched_lib.presentation import error_spread

_DRAWERS: dict[
    str,
    ty.Callable[
        [Sequence[error_series.Series], list[str], list[str]], figures.Figure
    ],
] = {
    'error': error_spread.draw,
    'cdf': error_cdf.draw,
    'mean': error_mean.draw,
}


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
