# SPDX-License-Identifier: Apache-2.0

"""Pages and axes that the figures share.

Figures are independent objects: there is no current figure and no window
system. Lengths are in inches, errors and shares in percent.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import math
import textwrap
import typing as ty

from matplotlib import axes as axes_
from matplotlib import figure as figures
from matplotlib import ticker

from vsched_lib.presentation import error_series

GREY = '#6b6b6b'
PALE = '#a8a8a8'
_BAND = '#e9f1ea'
_WARN = '#a33200'

#: The approximate number of characters of small print in an inch.
_PER_INCH = 15

#: The accuracy that workload controllers need, according to the paper.
NEEDED_PCT = 2.0


class Page:
    """A figure with a heading, and space for panels below.

    :param height: of the space below the heading.
    :param lines: below the heading, in small print.
    :param warnings: below them, in colour.
    """

    def __init__(
        self,
        width: float,
        height: float,
        heading: str,
        lines: Sequence[str],
        warnings: Sequence[str],
    ) -> None:
        self.width = width
        lines, warnings = self._wrap(lines), self._wrap(warnings)
        self.height = height + 0.45 + 0.17 * len([*lines, *warnings])
        self.figure = figures.Figure(figsize=(self.width, self.height))
        self._write(0.12, heading, size=12, weight='bold')
        top = 0.4
        for line in lines:
            self._write(top, line, size=8.5, color=GREY)
            top += 0.17
        for line in warnings:
            self._write(top, line, size=8.5, color=_WARN, weight='bold')
            top += 0.17

    def _wrap(self, lines: Iterable[str]) -> list[str]:
        # Break lines between facts only.
        return [
            part.replace('\N{NO-BREAK SPACE}', ' ')
            for line in lines
            for part in textwrap.wrap(
                line.replace(' ', '\N{NO-BREAK SPACE}').replace(
                    '·\N{NO-BREAK SPACE}', '· '
                ),
                int(self.width * _PER_INCH),
                break_on_hyphens=False,
            )
        ]

    def _write(self, top: float, text: str, **style: ty.Any) -> None:
        self.figure.text(
            0.15 / self.width,
            1 - top / self.height,
            text,
            va='top',
            parse_math=False,
            **style,
        )

    def panel(
        self, left: float, bottom: float, width: float, height: float
    ) -> axes_.Axes:
        """Add axes whose data area is this rectangle, from the bottom left."""
        return self.figure.add_axes(
            (
                left / self.width,
                bottom / self.height,
                width / self.width,
                height / self.height,
            )
        )


def share_axis(axes: axes_.Axes, shares: Sequence[float], named: bool) -> None:
    """Format the axis of reserved shares, logarithmic.

    :param shares: the measured ones, in ascending order.
    :param named: whether the axis has a label.
    """
    axes.set_xscale('log')
    axes.set_xlim(shares[0] / 1.13, shares[-1] * 1.13)
    liked = [share for share in (1, 10, 90, 2, 20, 50, 5) if share in shares]
    places: list[float] = []
    for share in (*liked, *shares):
        if all(abs(math.log10(share / one)) > 0.12 for one in places):
            places.append(share)
    ticks(axes.xaxis, sorted(places))
    if named:
        axes.set_xlabel('promised share of a CPU, %')


def limit(most: float, least: float) -> float:
    """Return the end of an axis, somewhat beyond a power of ten.

    :param most: the largest value to show.
    :param least: the smallest power of ten.
    """
    return 1.3 * max(least, 10.0 ** math.ceil(math.log10(max(most, least))))


def error_axis(
    axes: axes_.Axes, which: str, linear: float, low: float, high: float
) -> None:
    """Format an axis of positive and negative errors, logarithmic.

    :param which: ``x`` or ``y``.
    :param linear: the scale is linear below this value.
    :param low: where the axis ends below zero, as a size.
    """
    upright = which == 'y'
    (axes.set_yscale if upright else axes.set_xscale)(
        'symlog', linthresh=linear, linscale=0.4
    )
    (axes.set_ylim if upright else axes.set_xlim)(-low, high)
    decades = range(
        round(math.log10(linear)), math.ceil(math.log10(max(low, high)))
    )
    ticks(
        axes.yaxis if upright else axes.xaxis,
        [
            0,
            *(
                sign * 10.0**one
                for sign, end in ((-1, low), (1, high))
                for one in decades
                if 10.0**one < end
            ),
        ],
    )
    (axes.axhspan if upright else axes.axvspan)(
        -NEEDED_PCT, NEEDED_PCT, color=_BAND, zorder=0, lw=0
    )
    (axes.axhline if upright else axes.axvline)(
        0, color=GREY, lw=0.6, zorder=1
    )


def ticks(axis: ty.Any, places: Sequence[float]) -> None:
    """Set ticks at these places only."""
    axis.set_major_locator(ticker.FixedLocator(places))
    axis.set_major_formatter(
        ticker.FuncFormatter(
            lambda value, _: error_series.number(round(value, 4))
        )
    )
    axis.set_minor_locator(ticker.NullLocator())


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move ascending places apart, as little as necessary.

    Places that are too close are spaced evenly around their centre.
    """
    blocks: list[tuple[float, int]] = []
    for place in places:
        middle, size = place, 1
        while blocks:
            before, count = blocks[-1]
            if middle - before >= gap * (size + count) / 2:
                break
            middle = (before * count + middle * size) / (count + size)
            size += count
            blocks.pop()
        blocks.append((middle, size))
    return [
        middle + gap * (number - (size - 1) / 2)
        for middle, size in blocks
        for number in range(size)
    ]
