# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How the pictures of an error profile are drawn.

The only module that imports matplotlib. Figures are objects of their own:
there is no current figure, and no window system is asked for.
"""

from collections.abc import Sequence
import datetime
import itertools
import typing as ty

from matplotlib import axes as axes_
from matplotlib import figure as figures
from matplotlib import ticker

from vsched_lib.contract import messages
from vsched_lib.model import error

#: What the paper found, ppm: SEDF's largest error to one side, and what one
#: in ten of Credit's errors was beyond. Signs are those of its figure 7.
SEDF_MAX_PPM = 95_200
CREDIT_P90_PPM = 363_000

#: What controllers of workloads need, by the paper.
NEEDED_PPM = 20_000

# Okabe and Ito: told apart by everyone.
_COLOURS = {'deadline': '#0072B2', 'cfs': '#D55E00', 'rtds': '#009E73',
            'credit2': '#CC79A7', 'credit': '#E69F00'}
_OTHER = '#555555'
_GREY = '#777777'
_WARN = '#B03A00'

#: Errors are drawn on a logarithmic scale but for those smaller than this.
_LINEAR_PCT = 0.1


class Series(ty.NamedTuple):
    """Points that differ in their share alone, which rises."""

    backend: str
    period_us: int
    contenders: int
    probe: messages.Probe
    points: tuple[messages.ErrorPoint, ...]

    @property
    def colour(self) -> str:
        """One for each backend."""
        return _COLOURS.get(self.backend, _OTHER)

    @property
    def beside(self) -> str:
        """What ran meanwhile."""
        if not self.contenders:
            return 'alone'
        return '%d hog%s' % (self.contenders, 's'[:self.contenders - 1])


def draw(profile: messages.ErrorProfile, name: str,
         host: str) -> figures.Figure:
    """The figure of this name.

    :param name: ``error``, ``cdf`` or ``mean``.
    """
    figure = figures.Figure(figsize=(8, 4))
    series = _series(profile)
    if not series:
        figure.text(0.5, 0.5, 'this profile has no points', ha='center')
        return figure
    _DRAWERS[name](figure, series)
    figure.suptitle('%s %s' % (host, _facts(profile)), parse_math=False)
    return figure


def _series(profile: messages.ErrorProfile) -> list[Series]:
    """Points as lines: by backend, period, contention and probe."""
    def kind(point: messages.ErrorPoint) -> tuple[ty.Any, ...]:
        return (point.backend, point.period_us, point.contenders,
                point.probe)
    usable = [
        point for point in profile.points
        if point.n > 0 and point.share_ppm > 0 and
        len(point.counts) == len(error.EDGES_PPM) + 1 and
        len(point.quantiles_ppm) == len(error.QUANTILES_PPM)]
    usable.sort(key=lambda point: (*kind(point), point.share_ppm))
    return [Series(backend, period_us, contenders, probe, tuple(group))
            for (backend, period_us, contenders, probe), group
            in itertools.groupby(usable, kind)]


def _facts(profile: messages.ErrorProfile) -> str:
    try:
        when = datetime.datetime.fromtimestamp(
            profile.finished_at, datetime.UTC).strftime('%Y-%m-%d %H:%M UTC')
    except (OverflowError, ValueError, OSError):
        when = ''
    return '%s %d' % (when, profile.version)


def _share_axis(axes: axes_.Axes, series: Sequence[Series]) -> None:
    axes.set_xscale('log')
    axes.set_xlabel('promised share of a CPU, %')
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter('%g'))


def _error(figure: figures.Figure, series: Sequence[Series]) -> None:
    for number, one in enumerate(series):
        axes = figure.add_subplot(1, len(series), number + 1)
        shares = [point.share_ppm / 10_000 for point in one.points]
        axes.vlines(shares, [point.min_ppm / 10_000 for point in one.points],
                    [point.max_ppm / 10_000 for point in one.points],
                    colors=one.colour)
        axes.set_yscale('symlog', linthresh=_LINEAR_PCT)
        _share_axis(axes, series)
        axes.set_title('%s, %s' % (one.backend, one.beside))


def _cdf(figure: figures.Figure, series: Sequence[Series]) -> None:
    axes = figure.add_subplot()
    for one in series:
        counts = [sum(row) for row in zip(
            *(point.counts for point in one.points), strict=True)]
        total = sum(counts) or 1
        beyond = list(itertools.accumulate(counts))
        axes.plot([edge / 10_000 for edge in error.EDGES_PPM],
                  [100 * count / total for count in beyond[:-1]],
                  color=one.colour)
    axes.set_xscale('symlog', linthresh=_LINEAR_PCT)


def _mean(figure: figures.Figure, series: Sequence[Series]) -> None:
    axes = figure.add_subplot()
    for one in series:
        axes.plot([point.share_ppm / 10_000 for point in one.points],
                  [point.long_mean_ppm / 10_000 for point in one.points],
                  color=one.colour, marker='o')
    axes.set_yscale('symlog', linthresh=_LINEAR_PCT)
    _share_axis(axes, series)


_DRAWERS = {'error': _error, 'cdf': _cdf, 'mean': _mean}
