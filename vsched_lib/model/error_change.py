# SPDX-License-Identifier: Apache-2.0

"""Detect changes of a host's allocation errors.

Two profiles are compared point by point with the test of Kolmogorov and
Smirnov, which assumes nothing about the errors' distribution. It uses the
bins of their histograms, which only makes it more conservative.
"""

from collections.abc import Iterable
import dataclasses
from itertools import accumulate
import math
import typing as ty

from vsched_lib.model import error

#: Probability that two profiles of an unchanged host differ at a point.
FALSE_ALARM = 0.001
#: The p95 of the size must change by this much as well, in ppm: a significant
#: difference may be too small to matter.
MATTERS_PPM = 5_000


class Point(error.Point, ty.Protocol):
    """A point with the keys that identify it within its profile."""

    @property
    def backend(self) -> str:
        """What enforced the share."""

    @property
    def period_us(self) -> int:
        """Its period."""

    @property
    def contenders(self) -> int:
        """Number of hogs outside of the reservation."""

    @property
    def probe(self) -> str:
        """The load that had the share."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One point whose errors have changed.

    :param before_ppm: the p95 of their size.
    :param after_ppm: likewise, now.
    :param distance: the largest difference of the distributions, 0 to 1.
    """

    backend: str
    period_us: int
    share_ppm: int
    contenders: int
    before_ppm: int
    after_ppm: int
    distance: float


def changes(before: Iterable[Point], after: Iterable[Point]) -> list[Change]:
    """Return the points of both profiles whose errors differ.

    :returns: the largest change of the p95 first.
    """
    earlier = {_key(one): one for one in before}
    found = []
    for point in after:
        other = earlier.get(_key(point))
        if other is None:
            continue
        old, new = other.statistics, point.statistics
        distance = ks_distance(old, new)
        if (
            distance > ks_limit(old.n, new.n)
            and abs(new.abs_p95_ppm - old.abs_p95_ppm) >= MATTERS_PPM
        ):
            found.append(
                Change(
                    point.backend,
                    point.period_us,
                    point.share_ppm,
                    point.contenders,
                    old.abs_p95_ppm,
                    new.abs_p95_ppm,
                    distance,
                )
            )
    return sorted(
        found, key=lambda change: -abs(change.after_ppm - change.before_ppm)
    )


def ks_distance(one: error.Statistics, other: error.Statistics) -> float:
    """Return the largest difference of two distributions, 0 to 1."""
    return max(
        abs(left / one.n - right / other.n)
        for left, right in zip(
            accumulate(one.counts), accumulate(other.counts), strict=True
        )
    )


def ks_limit(one: int, other: int) -> float:
    """Return the distance that chance exceeds with :data:`FALSE_ALARM`.

    The asymptotic form, sqrt(-ln(a/2) (n + m) / (2 n m)).

    :param one: samples of one side.
    :param other: of the other.
    """
    return math.sqrt(
        -math.log(FALSE_ALARM / 2) * (one + other) / (2 * one * other)
    )


def _key(point: Point) -> tuple[ty.Any, ...]:
    return (
        point.backend,
        point.period_us,
        point.share_ppm,
        point.contenders,
        point.probe,
    )
