# SPDX-License-Identifier: Apache-2.0

"""What may be reserved by what was measured: evidence, bounds, margins."""

import dataclasses
from fractions import Fraction
import math

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import error
from vsched_lib.tests import strategies


@dataclasses.dataclass(frozen=True)
class Point:
    share_ppm: int
    statistics: error.Statistics


def point(share_ppm, samples):
    return Point(share_ppm, error.statistics(samples))


#: Points with samples enough to bound their p99 at 80 %.
POINTS = st.lists(
    st.builds(
        point,
        st.integers(1, 10).map(lambda one: one * 100_000),
        strategies.ERRORS_PPM.map(
            lambda some: some * math.ceil(161 / len(some))
        ),
    ),
    max_size=5,
)


class EvidenceTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.points = [
            point(share_ppm, range(-low, 300))
            for share_ppm, low in (
                (100_000, 1_000),
                (200_000, 500),
                (200_000, 700),
                (500_000, 400),
            )
        ]

    def test_measured_share_speaks_alone(self):
        found = error.evidence(self.points, 100_000, 0.8)
        self.assertEqual((100_000,), found.shares_ppm)
        self.assertEqual(1_300, found.n)
        self.assertEqual(
            self.points[0].statistics.size_ppm(0.8), found.size_ppm
        )

    def test_all_points_of_a_share_speak(self):
        found = error.evidence(self.points, 200_000, 0.8)
        self.assertEqual((200_000,), found.shares_ppm)
        self.assertEqual(800, found.n)
        self.assertEqual(
            self.points[2].statistics.lower_ppm(0.8), found.lower_ppm
        )

    def test_neighbours_speak_and_the_worse_counts(self):
        found = error.evidence(self.points, 150_000, 0.8)
        self.assertEqual((100_000, 200_000), found.shares_ppm)
        self.assertEqual(
            self.points[0].statistics.lower_ppm(0.8), found.lower_ppm
        )

    def test_shares_that_are_near_speak_as_well(self):
        points = [
            point(share_ppm, [low] * 200)
            for share_ppm, low in (
                (40_000, -90_000),
                (50_000, -10_000),
                (60_000, -70_000),
                (70_000, -99_000),
            )
        ]
        found = error.evidence(points, 50_000, 0.8)
        self.assertEqual((40_000, 50_000, 60_000), found.shares_ppm)
        self.assertEqual(-90_000, found.lower_ppm)

    def test_above_all_the_last_speaks(self):
        self.assertEqual(
            (500_000,), error.evidence(self.points, 900_000, 0.8).shares_ppm
        )

    def test_below_all_nothing_is_said(self):
        self.assertEqual(
            error.Evidence(None, None, 0, ()),
            error.evidence(self.points, 99_999, 0.8),
        )
        self.assertEqual(
            error.Evidence(None, None, 0, ()), error.evidence([], 500_000, 0.8)
        )

    def test_too_few_samples_of_one_neighbour(self):
        found = error.evidence(
            [*self.points, point(300_000, range(160))], 250_000, 0.8
        )
        self.assertIsNone(found.lower_ppm)
        self.assertIsNone(found.size_ppm)
        self.assertEqual(160, found.n)

    @hypothesis.given(
        POINTS,
        strategies.ERRORS_PPM,
        st.integers(1, error.PPM),
        strategies.CONFIDENCES,
    )
    def test_another_point_of_a_share_never_makes_it_better(
        self, points, samples, share_ppm, confidence
    ):
        before = error.evidence(points, share_ppm, confidence)
        if not before.shares_ppm:
            return
        after = error.evidence(
            [*points, point(before.shares_ppm[0], samples)],
            share_ppm,
            confidence,
        )
        self.assertEqual(before.shares_ppm, after.shares_ppm)
        self.assertLessEqual(after.n, before.n)
        if after.size_ppm is not None:
            self.assertGreaterEqual(after.size_ppm, before.size_ppm)
            self.assertLessEqual(after.lower_ppm, before.lower_ppm)


class CertifiedTestCase(base.BaseTestCase):
    def test_every_share_must_meet_the_bound(self):
        points = [
            point(100_000, [20_000] * 300),
            point(500_000, [-10_000] * 300),
        ]
        self.assertTrue(error.certified(points, 20_000, 0.8))
        self.assertTrue(error.certified(points, 20_000, 0.95))
        self.assertFalse(error.certified(points, 19_999, 0.8))
        self.assertTrue(error.certified(points, 10_000, 0.8, from_ppm=500_000))

    def test_small_shares_are_not_asked_about(self):
        points = [point(99_999, [error.PPM] * 300), point(100_000, [0] * 300)]
        self.assertTrue(error.certified(points, 1, 0.8))
        self.assertFalse(error.certified(points, 1, 0.8, from_ppm=1))

    def test_too_few_samples_certify_nothing(self):
        points = [point(100_000, [0] * 300), point(200_000, [0] * 160)]
        self.assertFalse(error.certified(points, error.PPM, 0.8))

    def test_nothing_measured_certifies_nothing(self):
        self.assertFalse(error.certified([], error.PPM, 0.8))
        self.assertFalse(
            error.certified([point(50_000, [0] * 300)], error.PPM, 0.8)
        )

    @hypothesis.given(POINTS, st.integers(0, 6 * error.PPM))
    def test_who_meets_much_meets_less(self, points, bound_ppm):
        if error.certified(points, bound_ppm, 0.8):
            for less in (
                (points, bound_ppm + 1, 0.8),
                (points, bound_ppm, 0.5),
                (points[1:] or points, bound_ppm, 0.8),
            ):
                self.assertTrue(error.certified(*less))

    @hypothesis.given(POINTS, st.integers(1, error.PPM))
    def test_evidence_at_every_share_agrees(self, points, share_ppm):
        bound_ppm = max(
            (one.statistics.size_ppm(0.8) for one in points), default=0
        )
        self.assertEqual(bool(points), error.certified(points, bound_ppm, 0.8))
        self.assertFalse(error.certified(points, bound_ppm - 1, 0.8))
        found = error.evidence(points, share_ppm, 0.8)
        if found.shares_ppm:
            self.assertLessEqual(found.size_ppm, bound_ppm)
            self.assertGreaterEqual(found.lower_ppm, -bound_ppm)


class MarginTestCase(base.BaseTestCase):
    def test_known(self):
        for lower_ppm, bound_ppm, margin_ppm in (
            (0, 0, 0),
            (-20_000, 20_000, 0),
            (-20_001, 20_000, 2),
            (-100_000, 0, 111_112),
            (-500_000, 0, error.PPM),
            (5_000, 0, 0),
            (-999_999, error.PPM, 0),
            (-error.PPM, 20_000, None),
        ):
            self.assertEqual(
                margin_ppm, error.margin_ppm(lower_ppm, bound_ppm)
            )

    @hypothesis.given(
        st.integers(1 - error.PPM, error.PPM), st.integers(0, error.PPM)
    )
    def test_with_the_margin_the_bound_holds_and_with_less_not(
        self, lower_ppm, bound_ppm
    ):
        margin_ppm = error.margin_ppm(lower_ppm, bound_ppm)

        def got(margin_ppm):
            return (1 + Fraction(margin_ppm, error.PPM)) * (
                1 + Fraction(lower_ppm, error.PPM)
            )

        least = 1 - Fraction(bound_ppm, error.PPM)
        self.assertGreaterEqual(got(margin_ppm), least)
        if margin_ppm:
            self.assertLess(got(margin_ppm - 1), least)

    @hypothesis.given(
        st.integers(1 - error.PPM, error.PPM - 1),
        st.integers(0, error.PPM - 1),
    )
    def test_worse_errors_and_tighter_bounds_take_more(
        self, lower_ppm, bound_ppm
    ):
        margin_ppm = error.margin_ppm(lower_ppm, bound_ppm)
        self.assertLessEqual(
            error.margin_ppm(lower_ppm + 1, bound_ppm), margin_ppm
        )
        self.assertLessEqual(
            error.margin_ppm(lower_ppm, bound_ppm + 1), margin_ppm
        )


class InflatedTestCase(base.BaseTestCase):
    def test_known(self):
        for runtime_us, period_us, margin_ppm, inflated_us in (
            (1_000, 10_000, 0, 1_000),
            (1_000, 10_000, 1, 1_001),
            (1_000, 10_000, 20_000, 1_020),
            (9_000, 10_000, 111_111, 10_000),
            (9_000, 10_000, 111_112, None),
            (10_000, 10_000, 0, 10_000),
            (10_000, 10_000, 1, None),
        ):
            self.assertEqual(
                inflated_us,
                error.inflated_us(runtime_us, period_us, margin_ppm),
            )

    @hypothesis.given(
        st.integers(1, 10**6),
        st.integers(0, 10**6),
        st.integers(1 - error.PPM, 0),
        st.integers(0, error.PPM),
    )
    def test_what_is_got_meets_the_bound(
        self, runtime_us, more_us, lower_ppm, bound_ppm
    ):
        margin_ppm = error.margin_ppm(lower_ppm, bound_ppm)
        found_us = error.inflated_us(
            runtime_us, runtime_us + more_us, margin_ppm
        )
        exact_us = runtime_us * (1 + Fraction(margin_ppm, error.PPM))
        if found_us is None:
            self.assertGreater(math.ceil(exact_us), runtime_us + more_us)
            return
        self.assertLess(found_us - exact_us, 1)
        self.assertGreaterEqual(
            found_us * (1 + Fraction(lower_ppm, error.PPM)),
            runtime_us * (1 - Fraction(bound_ppm, error.PPM)),
        )
