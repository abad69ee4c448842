# SPDX-License-Identifier: Apache-2.0

"""Pictures of profiles; of errors after figures 6 to 8 of HPL-2007-25."""

from collections.abc import Callable
import io
import typing as ty

from vsched_lib.contract import profiles

#: What can be drawn: the error at each share (figure 6), how many errors are
#: how large (figure 7), the mean error at each share (figure 8).
FIGURES = ('error', 'cdf', 'mean')

#: The formats of a picture.
FORMS = ('svg', 'png')

_STYLE = {
    'axes.edgecolor': '#666666',
    'axes.spines.right': False,
    'axes.spines.top': False,
    'axes.unicode_minus': True,
    'font.size': 9.0,
    'savefig.dpi': 120,
    # Text stays text, and the same profile gives the same file.
    'svg.fonttype': 'none',
    'svg.hashsalt': 'vsched',
}


class Unavailable(Exception):
    """There is nothing to draw with."""


def render(
    profile: profiles.ErrorProfile, figure: str, form: str, *, host: str = ''
) -> bytes:
    """Draw one picture. For one thread at a time.

    :param figure: one of :data:`FIGURES`.
    :param form: one of :data:`FORMS`.
    :param host: whose profile it is, for the heading.
    :returns: the file. The same for the same profile and release of
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
    """Draw what I/O costs; otherwise as :func:`render`."""

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
            'pictures need matplotlib, which can not be imported (%s): '
            'install vsched[plot]' % missing
        ) from missing
    # Settings of matplotlib are the whole process's.
    with matplotlib.style.context(['default', _STYLE]):
        draw().savefig(
            file,
            format=form,
            metadata={'Date': None} if form == 'svg' else {'Software': None},
        )
    return file.getvalue()
