# SPDX-License-Identifier: Apache-2.0

"""Allocation errors: how far the CPU time that was got is off the share.

ALERT (HPL-2007-25, section 4): give a CPU hog a share, and sample once a
second what it got. The error of a sample is (got - reserved) / reserved:
above zero it got more. All errors are in parts per million of the share.

Bounds of quantiles assume nothing about the distribution: the number of
samples below a quantile is binomial, so an order statistic bounds it at a
confidence that depends on the number of samples alone (David and Nagaraja,
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

#: The window of one sample.
WINDOW_US = 1_000_000

#: The window of the paper's long-scale figure, in samples.
LONG_WINDOWS = 180

#: The shares of the paper's benchmark, in ppm of a CPU.
PAPER_SHARES_PPM = tuple(
    share * 10_000 for share in (*range(1, 10), *range(10, 100, 10))
)

#: The quantiles a point keeps, in ppm: p1 to p99.
QUANTILES_PPM = (
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    750_000,
    900_000,
    950_000,
    990_000,
)

#: The quantile by which hosts are certified.
JUDGED_PPM = 990_000

#: Smaller shares are not certified, in ppm of a CPU: a tick is a larger part
#: of them than any bound.
JUDGED_FROM_PPM = 100_000

#: How many of the worst samples a point keeps. Bounds of the judged quantile
#: are among them up to some 2000 samples; of more, the innermost one kept is
#: a safe bound.
TAIL = 32

#: Up to how many samples ranks are exact. Finding one takes as many steps as
#: there are samples beyond the quantile.
EXACT_SAMPLES = 10_000

# Of as many samples as a host makes in a day, the chance that all are below
# the p99 is smaller than any float above zero.
_PRECISE = decimal.Context(
    prec=40, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX
)

_STEPS = (100, 150, 200, 300, 500, 700)
#: The bins of a histogram lie between these, in ppm; the first and the last
#: bin are open.
EDGES_PPM = tuple(
    sorted(
        {
            0,
            *(
                sign * step * 10**decade
                for sign in (-1, 1)
                for decade in range(5)
                for step in _STEPS
                if step * 10**decade <= 5 * PPM
            ),
        }
    )
)


def error_ppm(got_us: float, reserved_us: float) -> int:
    """Return by how much more was got than reserved.

    :param got_us: CPU time in the window, as long as it really was.
    :param reserved_us: share times the same window.
    :returns: ppm of what was reserved, rounded to the nearest; -1000000
        when nothing was got.
    """
    return round(PPM * (got_us - reserved_us) / reserved_us)


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the samples of one point.

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

    def lower_ppm(
        self, confidence: float, quantile_ppm: int = PPM - JUDGED_PPM
    ) -> int | None:
        """Return a lower bound of all but this part of the errors.

        :param confidence: above 0, below 1.
        :param quantile_ppm: the part, e.g. 10000 for p1.
        :returns: a lower confidence bound of that quantile in ppm; None
            when there are too few samples for the confidence.
        """
        # Symmetric: the p1 of the errors is the p99 of the negated errors.
        rank = upper_rank(self.n, PPM - quantile_ppm, confidence)
        return None if rank is None else _kept(self.lowest_ppm, self.n - rank)

    def size_ppm(
        self, confidence: float, quantile_ppm: int = JUDGED_PPM
    ) -> int | None:
        """Return a bound of the size of this part of the errors.

        :returns: an upper confidence bound in ppm; None when there are too
            few samples for the confidence.
        """
        rank = upper_rank(self.n, quantile_ppm, confidence)
        return None if rank is None else _kept(self.largest_ppm, self.n - rank)


def _kept(tail: Sequence[int], index: int) -> int:
    return tail[min(index, len(tail) - 1)]


def statistics(samples_ppm: Iterable[int]) -> Statistics:
    """Return the statistics of the samples of one point.

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
        n=len(ordered),
        mean_ppm=mean,
        min_ppm=ordered[0],
        max_ppm=ordered[-1],
        quantiles_ppm=tuple(quantile(ordered, part) for part in QUANTILES_PPM),
        abs_p50_ppm=quantile(sizes, 500_000),
        abs_p95_ppm=quantile(sizes, 950_000),
        abs_p99_ppm=quantile(sizes, 990_000),
        # Windows have one length, unless the sampler was late, so the mean
        # of their errors is the error of their sum.
        long_mean_ppm=mean,
        counts=tuple(counts),
        lowest_ppm=tuple(ordered[:TAIL]),
        largest_ppm=tuple(reversed(sizes[-TAIL:])),
    )


def quantile(ordered: Sequence[int], part_ppm: int) -> int:
    """Return the smallest sample that at least this part does not exceed.

    :param ordered: samples in rising order, at least one.
    :param part_ppm: the part, 0 to 1000000.
    """
    return ordered[
        max(0, math.ceil(Fraction(part_ppm, PPM) * len(ordered)) - 1)
    ]


@functools.lru_cache(maxsize=4096)
def upper_rank(n: int, quantile_ppm: int, confidence: float) -> int | None:
    """Return the rank of an upper confidence bound of a quantile.

    The k-th smallest of n samples is not below the q-quantile unless at
    least k samples lie below it, so with probability P(B(n, q) < k).

    Up to :data:`EXACT_SAMPLES` this is the smallest such rank. Of more, it
    is a closed bound that is never smaller: the time that it takes must not
    grow with a number that another process reports. For the judged quantile
    and confidences up to 0.999999 both ranks are farther from the largest
    sample than :data:`TAIL`, where what is kept of them is the same.

    :param n: samples.
    :param quantile_ppm: q, above 0, below 1000000.
    :param confidence: above 0, below 1.
    :returns: k, from 1; None when even the largest sample is no bound: that
        takes ln(1 - confidence) / ln(q) samples.
    """
    with decimal.localcontext(_PRECISE):
        part, missed = _chances(confidence, quantile_ppm)
        if n < 1 or part**n > missed:
            return None
        if n > EXACT_SAMPLES:
            return _bounding_rank(n, quantile_ppm, missed)
        # From above, where few terms remain: P(B >= k) as a running sum.
        above, rank = part**n, n
        term = above
        while rank > 1:
            # P(B = rank - 1) from P(B = rank).
            term *= rank * (1 - part) / (part * (n - rank + 1))
            if above + term > missed:
                break
            above += term
            rank -= 1
    return rank


def _bounding_rank(n: int, quantile_ppm: int, missed: decimal.Decimal) -> int:
    """Return a rank that is not below the smallest sufficient one.

    Chernoff: P(B(n, q) >= k) <= exp(-n D(k/n)) with D(a) the divergence of a
    from q. Its second derivative 1 / (a (1 - a)) is not below 1/v between q
    and k/n with v the largest a (1 - a) there, so that n D(k/n) is not below
    (k - n q)^2 / (2 n v).

    :param missed: the probability that the bound may fail with.
    """
    # v times PPM^2: from q = 1/2 on, a (1 - a) falls.
    half = PPM // 2
    largest = max(quantile_ppm, half) * (PPM - max(quantile_ppm, half))
    spread = (2 * n * largest * -missed.ln() / PPM**2).sqrt()
    rank = -(n * quantile_ppm // -PPM) + int(spread) + 1
    # The caller has checked that the largest sample is sufficient.
    return min(rank, n)


def samples_needed(confidence: float, quantile_ppm: int = JUDGED_PPM) -> int:
    """Return the fewest samples that bound a quantile with a confidence.

    :param confidence: above 0, below 1.
    :param quantile_ppm: above 0, below 1000000.
    """
    with decimal.localcontext(_PRECISE):
        part, missed = _chances(confidence, quantile_ppm)
        # Exact except for the last digits of the logarithms.
        needed = max(1, int(missed.ln() / part.ln()))
        if part**needed > missed:
            needed += 1
    return needed


def _chances(
    confidence: float, quantile_ppm: int
) -> tuple[decimal.Decimal, decimal.Decimal]:
    """Return a quantile's part, and the chance that its bound fails."""
    # From the decimal digits: 0.9 means nine tenths exactly.
    return (
        decimal.Decimal(quantile_ppm) / PPM,
        1 - decimal.Decimal(str(confidence)),
    )


class Point(ty.Protocol):
    """One measured point, as certification sees it."""

    @property
    def share_ppm(self) -> int:
        """The share that was reserved, in ppm of a CPU."""

    @property
    def statistics(self) -> Statistics:
        """The statistics of its errors."""


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """What the points near a share show together.

    :param lower_ppm: lower bound of 99 of 100 errors; None when there are
        too few samples.
    :param size_ppm: likewise of their size.
    :param n: the samples of the point that has fewest.
    :param shares_ppm: the points that were used.
    """

    lower_ppm: int | None
    size_ppm: int | None
    n: int
    shares_ppm: tuple[int, ...]


def evidence(
    points: Iterable[Point], share_ppm: int, confidence: float
) -> Evidence:
    """Return the bounds of the errors at a share.

    The measured shares next to it, below and above, count, and so does
    every one within a quarter of it: the phase of a budget to the kernel's
    ticks makes one share err less than its neighbours in one run, and more
    in the next. The worst decides. Above all measured shares the last one
    counts alone. Errors grow as shares shrink, so there are no bounds for a
    share below all that were measured.

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
    chosen.update(
        one.share_ppm for one in points if near(one.share_ppm, share_ppm)
    )
    relevant = [one.statistics for one in points if one.share_ppm in chosen]
    lowers = [one.lower_ppm(confidence) for one in relevant]
    sizes = [one.size_ppm(confidence) for one in relevant]
    return Evidence(
        None if None in lowers else min(ty.cast(list[int], lowers)),
        None if None in sizes else max(ty.cast(list[int], sizes)),
        min(one.n for one in relevant),
        tuple(sorted(chosen)),
    )


def near(one_ppm: int, other_ppm: int) -> bool:
    """Return whether two shares differ by at most a quarter of the lower."""
    low_ppm, high_ppm = sorted((one_ppm, other_ppm))
    return 4 * high_ppm <= 5 * low_ppm


def certified(
    points: Iterable[Point],
    bound_ppm: int,
    confidence: float,
    from_ppm: int = JUDGED_FROM_PPM,
) -> bool:
    """Return whether 99 of 100 errors are within a bound at every share.

    :param points: of one backend and period.
    :param bound_ppm: the largest size.
    :param confidence: above 0, below 1.
    :param from_ppm: shares below are left out.
    """
    sizes = [
        one.statistics.size_ppm(confidence)
        for one in points
        if one.share_ppm >= from_ppm
    ]
    return bool(sizes) and all(
        size is not None and size <= bound_ppm for size in sizes
    )


def margin_ppm(lower_ppm: int, bound_ppm: int) -> int | None:
    """Return the margin of a runtime that keeps errors above a bound.

    A runtime of (1 + m) times the share with an error e gets (1 + m)(1 + e)
    of the share; that must be at least 1 - bound.

    :param lower_ppm: lower bound of the errors.
    :param bound_ppm: what may be missing at most.
    :returns: m in ppm, rounded up, 0 when none is needed; None when no
        runtime is sufficient.
    """
    if lower_ppm <= -PPM:
        return None
    # Rounded up, in integers: computed for many hosts in each request.
    margin = -(PPM * (PPM - bound_ppm) // -(PPM + lower_ppm)) - PPM
    return margin if margin > 0 else 0


def inflated_us(runtime_us: int, period_us: int, margin: int) -> int | None:
    """Return a runtime with its margin.

    :param margin: in ppm.
    :returns: microseconds, rounded up; None when it exceeds the period.
    """
    grown = -(runtime_us * (PPM + margin) // -PPM)
    return grown if grown <= period_us else None
