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

"""How far the CPU time that was got is from what was promised.

ALERT (HPL-2007-25, section 4): give a CPU hog a share, look once a second
at what it got. The error of one look is (got - promised) / promised: above
zero it got more. All errors are in parts per million of what was promised.

What is said of quantiles needs no assumption about their distribution: the
number of samples below a quantile is binomial, so an order statistic bounds
it at a confidence that depends on the numbers alone (David and Nagaraja,
Order Statistics, section 7.1).
"""

import bisect
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import decimal
from fractions import Fraction
import functools
import math
import typing as ty

PPM = 1_000_000

#: The window of one look.
WINDOW_US = 1_000_000

#: The window of the paper's long-scale figure, in looks.
LONG_WINDOWS = 180

#: The shares of the paper's benchmark, in ppm of a CPU.
PAPER_SHARES_PPM = tuple(
    share * 10_000 for share in (*range(1, 10), *range(10, 100, 10)))

#: The quantiles a point keeps, in ppm: p1 to p99.
QUANTILES_PPM = (10_000, 50_000, 100_000, 250_000, 500_000, 750_000,
                 900_000, 950_000, 990_000)

#: The quantile that a promise is judged by.
JUDGED_PPM = 990_000

#: Of smaller shares a host is not judged, in ppm of a CPU: a tick is more of
#: them than any bound.
JUDGED_FROM_PPM = 100_000

#: How many of the worst samples a point keeps. Bounds of the judged quantile
#: are among them up to some 2000 samples; of more, the innermost one kept is
#: on the safe side.
TAIL = 32

# Of as many samples as a host makes in a day, the chance that all are below
# the p99 is smaller than any float above zero.
_PRECISE = decimal.Context(prec=40, Emin=decimal.MIN_EMIN,
                           Emax=decimal.MAX_EMAX)

_STEPS = (100, 150, 200, 300, 500, 700)
#: The bins of a histogram lie between these, in ppm; the first and the last
#: bin are open.
EDGES_PPM = tuple(sorted({0, *(
    sign * step * 10 ** decade for sign in (-1, 1) for decade in range(5)
    for step in _STEPS if step * 10 ** decade <= 5 * PPM)}))


def error_ppm(got_us: float, promised_us: float) -> int:
    """One look: by how much more was got than promised.

    :param got_us: CPU time in the window, as long as it really was.
    :param promised_us: share times the same window.
    :returns: ppm of what was promised, rounded to the nearest; -1000000
        when nothing was got.
    """
    return round(PPM * (got_us - promised_us) / promised_us)


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """What is kept of the samples of one point.

    :param n: how many there were.
    :param mean_ppm: their mean.
    :param quantiles_ppm: of the error, at :data:`QUANTILES_PPM`.
    :param abs_p50_ppm: of its size, likewise the next two.
    :param long_mean_ppm: the error over all windows together, the paper's
        figure 8 when there are :data:`LONG_WINDOWS` of them.
    :param counts: samples in each bin between :data:`EDGES_PPM`.
    :param lowest_ppm: the lowest, in rising order, at most :data:`TAIL`.
    :param largest_ppm: the largest sizes, falling, at most :data:`TAIL`.
    """

    n: int
    mean_ppm: int
    min_ppm: int
    max_ppm: int
    quantiles_ppm: tuple[int, ...]
    abs_p50_ppm: int
    abs_p95_ppm: int
    abs_p99_ppm: int
    long_mean_ppm: int
    counts: tuple[int, ...]
    lowest_ppm: tuple[int, ...]
    largest_ppm: tuple[int, ...]

    def lower_ppm(self, confidence: float,
                  quantile_ppm: int = PPM - JUDGED_PPM) -> int | None:
        """What all but this part of the errors is not below.

        :param confidence: above 0, below 1.
        :param quantile_ppm: the part, e.g. 10000 for p1.
        :returns: a lower confidence bound of that quantile in ppm; None
            when there are too few samples for the confidence.
        """
        # The lowest errors are to the p1 what the largest are to the p99.
        rank = upper_rank(self.n, PPM - quantile_ppm, confidence)
        return None if rank is None else _kept(self.lowest_ppm,
                                               self.n - rank)

    def size_ppm(self, confidence: float,
                 quantile_ppm: int = JUDGED_PPM) -> int | None:
        """What this part of the errors does not exceed in size.

        :returns: an upper confidence bound in ppm; None when there are too
            few samples for the confidence.
        """
        rank = upper_rank(self.n, quantile_ppm, confidence)
        return None if rank is None else _kept(self.largest_ppm,
                                               self.n - rank)


def _kept(tail: Sequence[int], index: int) -> int:
    return tail[min(index, len(tail) - 1)]


def statistics(samples_ppm: Iterable[int]) -> Statistics:
    """Sum up the samples of one point.

    :param samples_ppm: errors, one a window.
    :raises ValueError: when there is none.
    """
    ordered = sorted(samples_ppm)
    if not ordered:
        raise ValueError('there are no samples')
    sizes = sorted(map(abs, ordered))
    counts = [0] * (len(EDGES_PPM) + 1)
    for sample in ordered:
        counts[bisect.bisect_right(EDGES_PPM, sample)] += 1
    mean = round(sum(ordered) / len(ordered))
    return Statistics(
        n=len(ordered), mean_ppm=mean,
        min_ppm=ordered[0], max_ppm=ordered[-1],
        quantiles_ppm=tuple(
            quantile(ordered, part) for part in QUANTILES_PPM),
        abs_p50_ppm=quantile(sizes, 500_000),
        abs_p95_ppm=quantile(sizes, 950_000),
        abs_p99_ppm=quantile(sizes, 990_000),
        # Windows are of one length but for a sampler that was late, so that
        # their mean is the error of their sum.
        long_mean_ppm=mean,
        counts=tuple(counts),
        lowest_ppm=tuple(ordered[:TAIL]),
        largest_ppm=tuple(reversed(sizes[-TAIL:])))


def quantile(ordered: Sequence[int], part_ppm: int) -> int:
    """The smallest sample that at least this part is not above.

    :param ordered: samples in rising order, at least one.
    :param part_ppm: the part, 0 to 1000000.
    """
    return ordered[max(0, math.ceil(
        Fraction(part_ppm, PPM) * len(ordered)) - 1)]


@functools.lru_cache(maxsize=4096)
def upper_rank(n: int, quantile_ppm: int, confidence: float) -> int | None:
    """Which sample is not below a quantile, with this confidence.

    The k-th smallest of n samples is not below the q-quantile unless at
    least k samples lie below it, so with probability P(B(n, q) < k).

    :param n: samples.
    :param quantile_ppm: q, above 0, below 1000000.
    :param confidence: above 0, below 1.
    :returns: the smallest such k, from 1; None when even the largest sample
        does not do: it takes ln(1 - confidence) / ln(q) samples.
    """
    with decimal.localcontext(_PRECISE):
        part, missed = _chances(confidence, quantile_ppm)
        if n < 1 or part ** n > missed:
            return None
        # From above, where few terms remain: P(B >= k) as a running sum.
        above, rank = part ** n, n
        term = above
        while rank > 1:
            # P(B = rank - 1) from P(B = rank).
            term *= rank * (1 - part) / (part * (n - rank + 1))
            if above + term > missed:
                break
            above += term
            rank -= 1
    return rank


def samples_needed(confidence: float,
                   quantile_ppm: int = JUDGED_PPM) -> int:
    """The fewest samples that bound a quantile with this confidence.

    :param confidence: above 0, below 1.
    :param quantile_ppm: above 0, below 1000000.
    """
    with decimal.localcontext(_PRECISE):
        part, missed = _chances(confidence, quantile_ppm)
        needed = max(1, int(missed.ln() / part.ln()))
        while part ** needed > missed:
            needed += 1
    return needed


def _chances(confidence: float, quantile_ppm: int) -> tuple[
        decimal.Decimal, decimal.Decimal]:
    """A quantile's part, and the chance that a bound may fail with."""
    # By its digits: 0.9 is meant to be nine tenths.
    return (decimal.Decimal(quantile_ppm) / PPM,
            1 - decimal.Decimal(str(confidence)))


class Point(ty.Protocol):
    """One measured point, as certification sees it."""

    @property
    def share_ppm(self) -> int:
        """The share that was promised, in ppm of a CPU."""

    @property
    def statistics(self) -> Statistics:
        """What was found."""


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """What the points near a share say together.

    :param lower_ppm: the errors are not below this, but for one in a
        hundred; None when there are too few samples to say.
    :param size_ppm: likewise of their size.
    :param n: the samples of the point that has fewest.
    :param shares_ppm: the points that were looked at.
    """

    lower_ppm: int | None
    size_ppm: int | None
    n: int
    shares_ppm: tuple[int, ...]


def evidence(points: Iterable[Point], share_ppm: int,
             confidence: float) -> Evidence:
    """What is known of the errors at a share.

    The measured shares next to it, below and above, both speak, and so does
    every one within a quarter of it: how a budget falls on the kernel's ticks
    makes one share err less than its neighbours in one run, and more in the
    next. The worst counts. Beyond the ends the last one speaks alone, and
    only for shares above: errors grow as shares shrink, so nothing is said
    of a share below all that were measured.

    :param points: of one backend and period; several of one share, e.g.
        with and without contention, all count.
    :param share_ppm: of a CPU, for one vCPU.
    :param confidence: above 0, below 1.
    """
    points = list(points)
    below = [one for one in points if one.share_ppm <= share_ppm]
    above = [one for one in points if one.share_ppm >= share_ppm]
    if not below:
        return Evidence(None, None, 0, ())
    chosen = {max(one.share_ppm for one in below)}
    if above:
        chosen.add(min(one.share_ppm for one in above))
    chosen.update(one.share_ppm for one in points
                  if near(one.share_ppm, share_ppm))
    speaking = [one.statistics for one in points
                if one.share_ppm in chosen]
    lowers = [one.lower_ppm(confidence) for one in speaking]
    sizes = [one.size_ppm(confidence) for one in speaking]
    return Evidence(
        None if None in lowers else min(ty.cast(list[int], lowers)),
        None if None in sizes else max(ty.cast(list[int], sizes)),
        min(one.n for one in speaking), tuple(sorted(chosen)))


def near(one_ppm: int, other_ppm: int) -> bool:
    """Whether two shares differ by a quarter of the lower one at most."""
    low_ppm, high_ppm = sorted((one_ppm, other_ppm))
    return 4 * high_ppm <= 5 * low_ppm


def certified(points: Iterable[Point], bound_ppm: int, confidence: float,
              from_ppm: int = JUDGED_FROM_PPM) -> bool:
    """Whether 99 of 100 errors are within a bound at every measured share.

    :param points: of one backend and period.
    :param bound_ppm: the largest size.
    :param confidence: above 0, below 1.
    :param from_ppm: shares below are not asked about.
    """
    sizes = [one.statistics.size_ppm(confidence) for one in points
             if one.share_ppm >= from_ppm]
    return bool(sizes) and all(
        size is not None and size <= bound_ppm for size in sizes)


def margin_ppm(lower_ppm: int, bound_ppm: int) -> int | None:
    """By how much a runtime must grow so that errors keep above a bound.

    Who is given (1 + m) times the share and errs by e gets (1 + m)(1 + e) of
    what was promised; that is to be 1 - bound at least.

    :param lower_ppm: what the errors are not below.
    :param bound_ppm: what may be missing at most.
    :returns: m in ppm, rounded up, 0 when none is needed; None when no
        runtime helps.
    """
    if lower_ppm <= -PPM:
        return None
    # Rounded up, in integers: asked of many hosts in each request.
    margin = -(PPM * (PPM - bound_ppm) // -(PPM + lower_ppm)) - PPM
    return margin if margin > 0 else 0


def inflated_us(runtime_us: int, period_us: int, margin: int) -> int | None:
    """A runtime with its margin.

    :param margin: in ppm.
    :returns: microseconds, rounded up; None when it exceeds the period.
    """
    grown = -(runtime_us * (PPM + margin) // -PPM)
    return grown if grown <= period_us else None
