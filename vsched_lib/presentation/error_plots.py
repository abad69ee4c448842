# SPDX-License-Identifier: Apache-2.0

"""Render profiles as pictures; errors as in figures 6 to 8 of HPL-2007-25."""

from collections.abc import Callable
import io
import typing as ty

from vsched_lib.contract import profiles

#: The figures: the error at each share (figure 6), the distribution of the
#: errors' sizes (figure 7), the mean error at each share (figure 8).
FIGURES = ('error', 'cdf', 'mean')

#: The file formats.
FORMS = ('svg', 'png')

_STYLE = {
    'axes.edgecolor': '#666666',
    'axes.spines.right': False,
    'axes.spines.top': False,
    'axes.unicode_minus': True,
    'font.size': 9.0,
    'savefig.dpi': 120,
    # Text stays text, and equal profiles have equal files.
    'svg.fonttype': 'none',
    'svg.hashsalt': 'vsched',
}


class Unavailable(Exception):
    """matplotlib is not installed."""


def render(
    profile: profiles.ErrorProfile, figure: str, form: str, *, host: str = ''
) -> bytes:
    """Render one figure of an error profile. Not safe for several threads.

    :param figure: one of :data:`FIGURES`.
    :param form: one of :data:`FORMS`.
    :param host: name of the host, for the heading.
    :returns: the file. It is the same for the same profile and release of
        matplotlib.
    :raises ValueError: when there is no such figure or form.
    :raises Unavailable: when matplotlib is not installed.
    """
    if figure not in FIGURES:
        raise ValueError('figure is none of %s' % ', '.join(FIGURES))

    def draw() -> ty.Any:
        from vsched_lib.presentation import error_figures

        return error_figures.draw(profile, figure, host)

    return _file(draw, form)


def render_overhead(
    profile: profiles.OverheadProfile, form: str, *, host: str = ''
) -> bytes:
    """Render the figure of an overhead profile, as :func:`render`."""

    def draw() -> ty.Any:
        from vsched_lib.presentation import overhead_figures

        return overhead_figures.draw(profile, host)

    return _file(draw, form)


def _file(draw: Callable[[], ty.Any], form: str) -> bytes:
    if form not in FORMS:
        raise ValueError('form is none of %s' % ', '.join(FORMS))
    file = io.BytesIO()
    try:
        import matplotlib.style
    except ImportError as missing:
        raise Unavailable(
            'pictures need matplotlib, which cannot be imported (%s): '
            'install vsched[plot]' % missing
        ) from missing
    # matplotlib's settings are global for the process.
    with matplotlib.style.context(['default', _STYLE]):
        draw().savefig(
            file,
            format=form,
            metadata={'Date': None} if form == 'svg' else {'Software': None},
        )
    return file.getvalue()
