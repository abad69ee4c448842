# SPDX-License-Identifier: Apache-2.0

"""Errors of CPU allocation: what samples say, and at what confidence."""

from fractions import Fraction
import math
from unittest import mock

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import error
from vsched_lib.tests import strategies

PARTS_PPM = st.integers(1, error.PPM - 1) | st.sampled_from(
    error.QUANTILES_PPM
)


def chance_below(n, rank, quantile_ppm):
    """P(B(n, q) < rank), exact."""
    part = Fraction(quantile_ppm, error.PPM)
    return sum(
        (
            math.comb(n, k) * part**k * (1 - part) ** (n - k)
            for k in range(rank)
        ),
        Fraction(0),
    )


def exact_rank(n, quantile_ppm, confidence):
    """The smallest k with P(B(n, q) >= k) <= 1 - confidence, term by term."""
    part = Fraction(quantile_ppm, error.PPM)
    missed = 1 - Fraction(str(confidence))
    above, found = Fraction(0), None
    for rank in range(n, 0, -1):
        above += math.comb(n, rank) * part**rank * (1 - part) ** (n - rank)
        if above > missed:
            break
        found = rank
    return found


class UnboundedCountTestCase(base.BaseTestCase):
    """What another process says there were samples of."""

    # The terms of thousands of samples, as exact fractions, are long.
    @hypothesis.settings(deadline=None, max_examples=25)
    @hypothesis.given(
        st.integers(1, 400),
        st.sampled_from((10_000, 500_000, 950_000, 990_000)),
        strategies.CONFIDENCES,
    )
    def test_exact_sum(self, n, quantile_ppm, confidence):
        self.assertEqual(
            exact_rank(n, quantile_ppm, confidence),
            error.upper_rank(n, quantile_ppm, confidence),
        )

    @hypothesis.settings(deadline=None, max_examples=25)
    @hypothesis.given(st.integers(1000, 8000), strategies.CONFIDENCES)
    def test_exact_in_the_thousands(self, n, confidence):
        with mock.patch.object(error, 'EXACT_SAMPLES', 10**6):
            exact = error.upper_rank.__wrapped__(
                n, error.JUDGED_PPM, confidence
            )
        self.assertEqual(
            exact, error.upper_rank(n, error.JUDGED_PPM, confidence)
        )

    @hypothesis.settings(deadline=None, max_examples=50)
    @hypothesis.given(
        st.integers(1, 3000),
        PARTS_PPM,
        strategies.CONFIDENCES | st.sampled_from((0.99999, 1 - 1e-12)),
    )
    def test_the_closed_bound_is_never_smaller(
        self, n, quantile_ppm, confidence
    ):
        exact = error.upper_rank(n, quantile_ppm, confidence)
        with mock.patch.object(error, 'EXACT_SAMPLES', 0):
            bound = error.upper_rank.__wrapped__(n, quantile_ppm, confidence)
        if exact is None:
            self.assertIsNone(bound)
        else:
            self.assertTrue(exact <= bound <= n, (exact, bound))

    def test_the_difference_is_behind_what_is_kept(self):
        for confidence in (0.5, 0.8, 0.999, 0.999999):
            rank = error.upper_rank(
                error.EXACT_SAMPLES + 1, error.JUDGED_PPM, confidence
            )
            self.assertGreaterEqual(error.EXACT_SAMPLES + 1 - rank, error.TAIL)

    def test_time_does_not_grow_with_the_count(self):
        # It took 10**13 steps; a test that does not end fails.
        for n in (10**9, 10**15, 2**63 - 1):
            for confidence in (1e-9, 0.5, 0.8, 1 - 1e-12):
                rank = error.upper_rank(n, error.JUDGED_PPM, confidence)
                self.assertTrue(0.99 * n <= rank <= n)
        self.assertIsNone(error.upper_rank(10**5, 999_999, 0.8))
        self.assertEqual(10**7, error.upper_rank(10**7, 999_999, 0.9999))

    @hypothesis.given(
        PARTS_PPM,
        strategies.CONFIDENCES
        | st.sampled_from((5e-324, 1e-9, 1 - 1e-12, 1 - 2**-53)),
    )
    def test_samples_needed(self, quantile_ppm, confidence):
        needed = error.samples_needed(confidence, quantile_ppm)
        self.assertIsNotNone(
            error.upper_rank.__wrapped__(needed, quantile_ppm, confidence)
        )
        if needed > 1:
            self.assertIsNone(
                error.upper_rank.__wrapped__(
                    needed - 1, quantile_ppm, confidence
                )
            )


class ErrorTestCase(base.BaseTestCase):
    def test_known(self):
        for got_us, reserved_us, ppm in (
            (200_000, 200_000, 0),
            (0, 5, -error.PPM),
            (10, 5, error.PPM),
            (109_520, 100_000, 95_200),
            (99_999.9, 100_000, -1),
        ):
            self.assertEqual(ppm, error.error_ppm(got_us, reserved_us))

    @hypothesis.given(st.integers(0, 10**9), st.integers(1, 10**9))
    def test_sign_and_size(self, got_us, reserved_us):
        ppm = error.error_ppm(got_us, reserved_us)
        self.assertGreaterEqual(ppm, -error.PPM)
        self.assertAlmostEqual(
            got_us,
            reserved_us * (1 + Fraction(ppm, error.PPM)),
            delta=reserved_us * Fraction(1, error.PPM),
        )


class TablesTestCase(base.BaseTestCase):
    def test_shares_of_the_paper(self):
        self.assertEqual(18, len(error.PAPER_SHARES_PPM))
        self.assertEqual(
            (10_000, 90_000, 100_000, 900_000),
            tuple(error.PAPER_SHARES_PPM[index] for index in (0, 8, 9, 17)),
        )

    def test_edges_rise_and_are_symmetric(self):
        self.assertEqual(tuple(sorted(set(error.EDGES_PPM))), error.EDGES_PPM)
        self.assertEqual(
            tuple(-edge for edge in reversed(error.EDGES_PPM)), error.EDGES_PPM
        )
        self.assertIn(0, error.EDGES_PPM)
        # Any bound that a flavor may ask for falls between two of them.
        self.assertEqual(100, min(map(abs, filter(None, error.EDGES_PPM))))
        self.assertEqual(5 * error.PPM, error.EDGES_PPM[-1])


class QuantileTestCase(base.BaseTestCase):
    def test_known(self):
        ordered = list(range(1, 101))
        for part_ppm, expected in (
            (0, 1),
            (1, 1),
            (10_000, 1),
            (10_001, 2),
            (500_000, 50),
            (990_000, 99),
            (990_001, 100),
            (error.PPM, 100),
        ):
            self.assertEqual(expected, error.quantile(ordered, part_ppm))

    @hypothesis.given(
        strategies.ERRORS_PPM.map(sorted), st.integers(1, error.PPM)
    )
    def test_smallest_that_the_part_is_not_above(self, ordered, part_ppm):
        found = error.quantile(ordered, part_ppm)
        self.assertIn(found, ordered)
        needed = Fraction(part_ppm, error.PPM) * len(ordered)
        self.assertGreaterEqual(sum(one <= found for one in ordered), needed)
        self.assertLess(sum(one < found for one in ordered), needed)

    @hypothesis.given(strategies.ERRORS_PPM.map(sorted), PARTS_PPM, PARTS_PPM)
    def test_rises_with_the_part(self, ordered, one_ppm, other_ppm):
        low_ppm, high_ppm = sorted((one_ppm, other_ppm))
        self.assertLessEqual(
            error.quantile(ordered, low_ppm), error.quantile(ordered, high_ppm)
        )


class StatisticsTestCase(base.BaseTestCase):
    def test_known(self):
        found = error.statistics([300, -1_000, 0, 100, 700])
        self.assertEqual(
            (5, 20, -1_000, 700, 20),
            (
                found.n,
                found.mean_ppm,
                found.min_ppm,
                found.max_ppm,
                found.long_mean_ppm,
            ),
        )
        self.assertEqual(
            (-1_000, -1_000, -1_000, 0, 100, 300, 700, 700, 700),
            found.quantiles_ppm,
        )
        self.assertEqual(
            (300, 1_000, 1_000),
            (found.abs_p50_ppm, found.abs_p95_ppm, found.abs_p99_ppm),
        )
        self.assertEqual((-1_000, 0, 100, 300, 700), found.lowest_ppm)
        self.assertEqual((1_000, 700, 300, 100, 0), found.largest_ppm)
        # An edge belongs to the bin above it.
        self.assertEqual(
            {-1_000: 1, 0: 1, 100: 1, 300: 1, 700: 1},
            {
                error.EDGES_PPM[bin_ - 1]: count
                for bin_, count in enumerate(found.counts)
                if count
            },
        )

    def test_none(self):
        self.assertRaises(ValueError, error.statistics, [])

    def test_open_bins(self):
        found = error.statistics([-6 * error.PPM, 6 * error.PPM])
        self.assertEqual((1, 1), (found.counts[0], found.counts[-1]))

    @hypothesis.given(strategies.ERRORS_PPM)
    def test_any(self, samples):
        found = error.statistics(samples)
        self.assertEqual(len(samples), found.n)
        self.assertEqual(len(samples), sum(found.counts))
        self.assertEqual(len(error.EDGES_PPM) + 1, len(found.counts))
        self.assertLessEqual(found.min_ppm, found.mean_ppm)
        self.assertLessEqual(found.mean_ppm, found.max_ppm)
        self.assertEqual(
            sorted(found.quantiles_ppm), list(found.quantiles_ppm)
        )
        self.assertEqual(min(samples), found.min_ppm)
        self.assertEqual(max(samples), found.max_ppm)
        self.assertEqual(
            tuple(sorted(samples)[: error.TAIL]), found.lowest_ppm
        )
        self.assertEqual(
            tuple(sorted(map(abs, samples), reverse=True)[: error.TAIL]),
            found.largest_ppm,
        )
        for number, edge_ppm in enumerate(error.EDGES_PPM):
            self.assertEqual(
                sum(one < edge_ppm for one in samples),
                sum(found.counts[: number + 1]),
            )

    @hypothesis.given(strategies.ERRORS_PPM)
    def test_order_does_not_matter(self, samples):
        self.assertEqual(
            error.statistics(samples), error.statistics(reversed(samples))
        )


class RankTestCase(base.BaseTestCase):
    """Order statistics against the binomial distribution itself."""

    @hypothesis.given(st.integers(1, 60), PARTS_PPM, strategies.CONFIDENCES)
    def test_exact(self, n, quantile_ppm, confidence):
        rank = error.upper_rank(n, quantile_ppm, confidence)
        expected = Fraction(str(confidence))
        if rank is None:
            self.assertLess(chance_below(n, n, quantile_ppm), expected)
            return
        self.assertGreaterEqual(chance_below(n, rank, quantile_ppm), expected)
        if rank > 1:
            self.assertLess(chance_below(n, rank - 1, quantile_ppm), expected)

    def test_exact_where_promises_are_judged(self):
        for n in (161, 180, 299, 300, 540):
            for confidence in (0.8, 0.9, 0.95, 0.99):
                rank = error.upper_rank(n, error.JUDGED_PPM, confidence)
                expected = Fraction(str(confidence))
                if rank is None:
                    self.assertLess(
                        chance_below(n, n, error.JUDGED_PPM), expected
                    )
                    continue
                self.assertGreaterEqual(
                    chance_below(n, rank, error.JUDGED_PPM), expected
                )
                self.assertLess(
                    chance_below(n, rank - 1, error.JUDGED_PPM), expected
                )

    def test_many_samples(self):
        # More than a float can hold the chance of: 0.99 ** 80000 is 0 there.
        # For so many the normal distribution tells where the rank is.
        for n in (80_000, 86_400, 1_000_000):
            with mock.patch.object(error, 'EXACT_SAMPLES', n):
                rank = error.upper_rank.__wrapped__(n, error.JUDGED_PPM, 0.95)
            self.assertAlmostEqual(
                0.99 * n + 1.645 * math.sqrt(n * 0.99 * 0.01), rank, delta=3
            )
        self.assertEqual(4, error.upper_rank(200, 10_000, 0.8))

    def test_no_samples(self):
        self.assertIsNone(error.upper_rank(0, error.JUDGED_PPM, 0.5))

    @hypothesis.given(
        st.integers(1, 2_000),
        PARTS_PPM,
        strategies.CONFIDENCES,
        strategies.CONFIDENCES,
    )
    def test_more_confidence_takes_a_higher_rank(
        self, n, quantile_ppm, one, other
    ):
        low, high = (
            error.upper_rank(n, quantile_ppm, confidence)
            for confidence in sorted((one, other))
        )
        if high is not None:
            self.assertLessEqual(low, high)

    @hypothesis.given(st.integers(1, 2_000), strategies.CONFIDENCES)
    def test_one_more_sample_is_never_worse(self, n, confidence):
        ranks = [
            error.upper_rank(size, error.JUDGED_PPM, confidence)
            for size in (n, n + 1)
        ]
        if ranks[0] is not None:
            self.assertIn(ranks[1] - ranks[0], (0, 1))

    def test_samples_needed_known(self):
        self.assertEqual(161, error.samples_needed(0.8))
        self.assertEqual(299, error.samples_needed(0.95))
        self.assertEqual(1, error.samples_needed(0.9, 100_000))
        self.assertEqual(2, error.samples_needed(0.75, 500_000))

    @hypothesis.given(strategies.CONFIDENCES, st.integers(1, 999_000))
    def test_samples_needed_are_the_fewest(self, confidence, quantile_ppm):
        needed = error.samples_needed(confidence, quantile_ppm)
        self.assertIsNotNone(
            error.upper_rank(needed, quantile_ppm, confidence)
        )
        self.assertIsNone(
            error.upper_rank(needed - 1, quantile_ppm, confidence)
        )


class BoundsTestCase(base.BaseTestCase):
    def test_known(self):
        found = error.statistics(range(-100, 200))
        # The 299th of 300 for 80 %, the 300th for 95 %.
        self.assertEqual(198, found.size_ppm(0.8))
        self.assertEqual(199, found.size_ppm(0.95))
        self.assertEqual(-99, found.lower_ppm(0.8))
        self.assertEqual(-100, found.lower_ppm(0.95))
        self.assertIsNone(found.size_ppm(0.96))
        self.assertIsNone(found.lower_ppm(0.96))

    def test_beyond_the_tail_that_is_kept_it_is_on_the_safe_side(self):
        found = error.statistics(range(10_000))
        rank = error.upper_rank(10_000, error.JUDGED_PPM, 0.95)
        self.assertLess(rank, 10_000 - error.TAIL)
        self.assertEqual(10_000 - error.TAIL, found.size_ppm(0.95))
        self.assertEqual(error.TAIL - 1, found.lower_ppm(0.95))

    @hypothesis.given(strategies.ERRORS_PPM, strategies.CONFIDENCES, PARTS_PPM)
    def test_never_better_than_the_sample(self, samples, confidence, part):
        found = error.statistics(samples)
        size_ppm = found.size_ppm(confidence, part)
        lower_ppm = found.lower_ppm(confidence, error.PPM - part)
        self.assertEqual(size_ppm is None, lower_ppm is None)
        if size_ppm is None:
            return
        rank = error.upper_rank(found.n, part, confidence)
        sizes = sorted(map(abs, samples))
        self.assertGreaterEqual(size_ppm, sizes[rank - 1])
        self.assertLessEqual(lower_ppm, sorted(samples)[found.n - rank])
        self.assertGreaterEqual(lower_ppm, found.min_ppm)
        if found.n <= error.TAIL:
            self.assertEqual(sizes[rank - 1], size_ppm)

    @hypothesis.given(
        strategies.ERRORS_PPM, strategies.CONFIDENCES, strategies.CONFIDENCES
    )
    def test_more_confidence_is_a_wider_bound(self, samples, one, other):
        found = error.statistics(samples * 20)
        less, more = sorted((one, other))
        if found.size_ppm(more) is not None:
            self.assertLessEqual(found.size_ppm(less), found.size_ppm(more))
            self.assertGreaterEqual(
                found.lower_ppm(less), found.lower_ppm(more)
            )
