# SPDX-License-Identifier: Apache-2.0

"""Prepare the texts and series of an error profile for its figures."""

from collections.abc import Iterable
from collections.abc import Sequence
import datetime
import itertools
import typing as ty

from vsched_lib.contract import profiles
from vsched_lib.model import error

#: From this share on the scheduler's tick should have no visible effect.
LARGE_PPM = 100_000

#: The confidence, in percent, at which a quick run is evaluated.
CONFIDENCE_PCT = 80

#: Maximum number of combinations of backend and period, and of contention and
#: probe. A profile with more was not made by vsched.
ROWS, COLUMNS = 12, 6

#: Errors are clamped to this size for drawing.
_FAR_PPM = 10**12

#: Maximum length of a text from another process.
_LONGEST = 48

_PROBES = {
    profiles.Probe.THREAD: 'host threads',
    profiles.Probe.VCPU: 'vCPUs of a VM',
}


class Series(ty.NamedTuple):
    """Points that differ in their share only, in ascending order."""

    backend: str
    period_us: int
    contenders: int
    probe: profiles.Probe
    points: tuple[profiles.ErrorPoint, ...]

    @property
    def beside(self) -> str:
        """Return the contention: what ran beside, and where the hogs ran."""
        text = (
            'alone'
            if self.contenders < 1
            else 'beside %d hog%s'
            % (self.contenders, 's'[: self.contenders - 1])
        )
        return text + (' in a VM' if self.probe is profiles.Probe.VCPU else '')

    @property
    def name(self) -> str:
        """Return the backend and the contention."""
        return '%s %s' % (clean(self.backend), self.beside)

    @property
    def period(self) -> str:
        """Return the period, with its unit."""
        return '%g ms' % (self.period_us / 1000)

    def worst(self, large: bool) -> str | None:
        """Return the largest p99 of the errors' sizes, with its unit.

        :param large: at shares from :data:`LARGE_PPM` on; else below.
        :returns: None when no such share was measured.
        """
        sizes = [
            point.abs_p99_ppm
            for point in self.points
            if (point.share_ppm >= LARGE_PPM) == large
        ]
        return percent(max(sizes)) if sizes else None

    def extent_ppm(self) -> tuple[int, int]:
        """Return the lowest and the highest error."""
        return (
            min(point.min_ppm for point in self.points),
            max(point.max_ppm for point in self.points),
        )


def series(points: Iterable[profiles.ErrorPoint]) -> list[Series]:
    """Group points to series, by backend, period, contention and probe.

    Points that cannot be drawn are omitted: those without samples or with
    lists of another length than in this release, and those beyond :data:`ROWS`
    and :data:`COLUMNS`.
    """

    def kind(point: profiles.ErrorPoint) -> tuple[ty.Any, ...]:
        return (
            _rank(point.backend),
            point.backend,
            point.period_us,
            point.contenders,
            point.probe,
        )

    usable = [
        point
        for point in points
        if point.n > 0
        and point.share_ppm > 0
        and len(point.counts) == len(error.EDGES_PPM) + 1
        and len(point.quantiles_ppm) == len(error.QUANTILES_PPM)
    ]
    usable.sort(key=lambda point: (*kind(point), point.share_ppm))
    rows = sorted({kind(point)[:3] for point in usable})[:ROWS]
    columns = sorted({kind(point)[3:] for point in usable})[:COLUMNS]
    return [
        Series(backend, period_us, contenders, probe, tuple(group))
        for (
            rank,
            backend,
            period_us,
            contenders,
            probe,
        ), group in itertools.groupby(usable, kind)
        if (rank, backend, period_us) in rows
        and (contenders, probe) in columns
    ]


def _rank(backend: str) -> int:
    """Return the order of a backend; one with a guarantee comes first."""
    return 0 if backend == 'deadline' else 1


def beyond(
    points: Sequence[profiles.ErrorPoint], sign: int
) -> list[tuple[float, float]]:
    """Return the distribution of the errors of all points.

    It is exact at the edges of the histogram, and at its end.

    :param sign: -1 for errors below the reservation, 1 for the others.
    :returns: pairs of an error and of the fraction of all errors that lie
        beyond, both in percent; the errors increase, the fractions decrease.
    """
    counts = [
        sum(column)
        for column in zip(*(point.counts for point in points), strict=True)
    ]
    total = sum(counts)
    if total < 1:
        return []
    if sign < 0:
        edges = error.EDGES_PPM[::-1]
        end_ppm = min(point.min_ppm for point in points)
    else:
        edges = error.EDGES_PPM
        end_ppm = max(point.max_ppm for point in points)
        counts.reverse()
    found = [
        (pct(edge_ppm), 100 * count / total)
        for edge_ppm, count in zip(
            edges, list(itertools.accumulate(counts))[-2::-1], strict=True
        )
        if 0 <= sign * edge_ppm <= sign * end_ppm and count > 0
    ]
    if found and sign * found[-1][0] < sign * pct(end_ppm):
        found.append((pct(end_ppm), 100 / total))
    return found


def subtitles(profile: profiles.ErrorProfile, host: str) -> list[str]:
    """Return the lines of a picture about the origin of its data."""
    points = [point for one in series(profile.points) for point in one.points]
    where = [
        'Linux %s' % clean(profile.kernel),
        'tick %g ms' % (profile.tick_us / 1000),
        '%d CPU%s' % (profile.cpus, 's' * (profile.cpus != 1)),
        'load %.1f' % profile.load,
        '%s no. %d%s'
        % (
            'free samples'
            if profile.source is profiles.ProfileSource.LIVE
            else 'benchmark',
            profile.version,
            _day(profile),
        ),
    ]
    if host:
        where.insert(0, clean(host))
    if not points:
        return [' · '.join(where)]
    backends = dict.fromkeys(one.backend for one in series(points))
    periods = sorted({point.period_us for point in points})
    what = [
        'backend%s %s'
        % ('s' * (len(backends) > 1), ', '.join(map(clean, backends))),
        'period%s %s ms'
        % (
            's' * (len(periods) > 1),
            ', '.join('%g' % (one / 1000) for one in periods),
        ),
        ' and '.join(
            text
            for probe, text in _PROBES.items()
            if any(point.probe is probe for point in points)
        ),
        '%s window%s of %s s at each of %d point%s, %d in all'
        % (
            _range(point.n for point in points),
            's' * any(point.n > 1 for point in points),
            _range(point.window_us / 1_000_000 for point in points),
            len(points),
            's' * (len(points) > 1),
            sum(point.n for point in points),
        ),
    ]
    return [' · '.join(where), ' · '.join(what)]


def warnings(profile: profiles.ErrorProfile) -> list[str]:
    """Return the warnings of a picture."""
    found = []
    shown = sum(len(one.points) for one in series(profile.points))
    if profile.quick:
        found.append(
            'quick run: wide bounds (to bound the p99 at %d %% confidence '
            'takes %d windows a point)'
            % (CONFIDENCE_PCT, error.samples_needed(CONFIDENCE_PCT / 100))
        )
    if not profile.complete:
        found.append(
            'incomplete: not every point that was asked for was measured'
        )
    if shown < len(profile.points):
        found.append(
            '%d of %d points are not drawn'
            % (len(profile.points) - shown, len(profile.points))
        )
    return found


def _range(numbers: Iterable[float]) -> str:
    found = sorted(set(numbers))
    text = '%g' % found[0]
    return text if len(found) == 1 else '%s to %g' % (text, found[-1])


def _day(profile: profiles.ErrorProfile) -> str:
    try:
        return datetime.datetime.fromtimestamp(
            profile.finished_at, datetime.UTC
        ).strftime(' of %Y-%m-%d')
    except (OverflowError, ValueError, OSError):
        return ''


def pct(ppm: int) -> float:
    """Convert ppm to percent."""
    return min(max(ppm, -_FAR_PPM), _FAR_PPM) / 10_000


def percent(ppm: int) -> str:
    """Format an error as percent with two digits."""
    return number(float('%.2g' % pct(ppm))) + ' %'


def number(value: float) -> str:
    """Format a number with a typographic minus sign."""
    return ('%g' % value).replace('-', '\N{MINUS SIGN}')


def clean(text: str) -> str:
    """Convert text from another process to one short line."""
    text = ''.join(one if one.isprintable() else '?' for one in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'
