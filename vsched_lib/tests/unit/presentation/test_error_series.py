# SPDX-License-Identifier: Apache-2.0

"""What is said of an error profile."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.presentation import error_series
from vsched_lib.tests import error_profiles
from vsched_lib.tests import strategies


class SeriesTestCase(base.BaseTestCase):
    def test_by_backend_period_contention_and_probe(self):
        points = error_profiles.full(
            windows=2,
            shares_ppm=(500_000, 20_000),
            periods_us=(100_000, 10_000),
            backends=('cfs', 'deadline'),
            contenders=(4, 0),
        ).points
        found = error_series.series(points)
        self.assertEqual(
            [
                ('deadline', 10_000, 0),
                ('deadline', 10_000, 4),
                ('deadline', 100_000, 0),
                ('deadline', 100_000, 4),
                ('cfs', 10_000, 0),
                ('cfs', 10_000, 4),
                ('cfs', 100_000, 0),
                ('cfs', 100_000, 4),
            ],
            [one[:3] for one in found],
        )
        for one in found:
            self.assertEqual(
                [20_000, 500_000], [point.share_ppm for point in one.points]
            )

    def test_names(self):
        for contenders, probe, name in (
            (0, 'thread', 'cfs alone'),
            (1, 'thread', 'cfs beside 1 hog'),
            (4, 'vcpu', 'cfs beside 4 hogs in a VM'),
        ):
            (one,) = error_series.series(
                [
                    error_profiles.point(
                        [1],
                        backend='cfs',
                        contenders=contenders,
                        probe=profiles.Probe(probe),
                    )
                ]
            )
            self.assertEqual(name, one.name)

    def test_worst(self):
        (one,) = error_series.series(
            [
                error_profiles.point([sample], share_ppm=share_ppm)
                for share_ppm, sample in (
                    (99_999, -51_234),
                    (100_000, 123),
                    (200_000, -9_876),
                )
            ]
        )
        self.assertEqual('0.99 %', one.worst(True))
        self.assertEqual('5.1 %', one.worst(False))
        self.assertIsNone(one._replace(points=one.points[:1]).worst(True))


class BeyondTestCase(base.BaseTestCase):
    def test_known(self):
        points = [
            error_profiles.point(found)
            for found in ([-1_200, -100, -50, 0], [150, 170, 2_000, -1_000])
        ]
        self.assertEqual(
            [
                (0, 50.0),
                (-0.01, 25.0),
                (-0.015, 25.0),
                (-0.02, 25.0),
                (-0.03, 25.0),
                (-0.05, 25.0),
                (-0.07, 25.0),
                (-0.1, 12.5),
                (-0.12, 12.5),
            ],
            error_series.beyond(points, -1),
        )
        self.assertEqual(
            [
                (0, 50.0),
                (0.01, 37.5),
                (0.015, 37.5),
                (0.02, 12.5),
                (0.03, 12.5),
                (0.05, 12.5),
                (0.07, 12.5),
                (0.1, 12.5),
                (0.15, 12.5),
                (0.2, 12.5),
            ],
            error_series.beyond(points, 1),
        )

    @hypothesis.given(st.lists(strategies.ERRORS_PPM, min_size=1, max_size=3))
    def test_counts(self, lists):
        samples = sorted(sum(lists, []))
        points = [error_profiles.point(found) for found in lists]
        for sign, end in ((-1, samples[0]), (1, samples[-1])):
            found = error_series.beyond(points, sign)
            parts = [part for _, part in found]
            self.assertEqual(sorted(parts, reverse=True), parts)
            for x, part in found:
                ppm = round(x * 10_000)
                count = sum(
                    one < ppm if sign < 0 else one >= ppm for one in samples
                )
                if ppm == end:
                    # The end: one at least, all that are equal at most.
                    count = max(count, 1)
                    self.assertLessEqual(
                        part * len(samples),
                        100 * (count + samples.count(end)) + 1e-6,
                    )
                self.assertGreaterEqual(
                    part * len(samples) + 1e-6, 100 * min(count, 1)
                )
                if ppm in error.EDGES_PPM and ppm != end:
                    self.assertAlmostEqual(100 * count, part * len(samples), 6)

    def test_nothing_on_this_side(self):
        points = [error_profiles.point([5, 7])]
        self.assertEqual([], error_series.beyond(points, -1))
        points = [error_profiles.point([-5, -7])]
        self.assertEqual([], error_series.beyond(points, 1))


class WordsTestCase(base.BaseTestCase):
    def test_subtitles(self):
        profile = error_profiles.profile(
            [
                error_profiles.point([1]),
                error_profiles.point([1, 2], window_us=500_000),
            ],
            cpus=1,
            tick_us=1_000,
        )
        self.assertEqual(
            [
                'h · Linux 6.1.0-18-amd64 · tick 1 ms · 1 CPU · load 0.3 · '
                'benchmark no. 3 of 2025-10-09',
                'backend deadline · period 10 ms · host threads · 1 to 2 '
                'windows of 0.5 to 1 s at each of 2 points, 3 in all',
            ],
            error_series.subtitles(profile, 'h'),
        )

    def test_no_warnings_of_a_full_run(self):
        profile = error_profiles.full(windows=2)
        self.assertEqual([], error_series.warnings(profile))
        self.assertEqual(
            2,
            len(
                error_series.warnings(
                    dataclasses.replace(profile, quick=True, complete=False)
                )
            ),
        )

    def test_percent(self):
        for ppm, text in (
            (0, '0 %'),
            (-600_123, '\N{MINUS SIGN}60 %'),
            (1_234, '0.12 %'),
            (9_996, '1 %'),
            (3_700_000, '370 %'),
            (10**400, '1e+08 %'),
        ):
            self.assertEqual(text, error_series.percent(ppm))
