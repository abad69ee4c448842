# SPDX-License-Identifier: Apache-2.0

import random

from oslotest import base

from vsched_lib.model import error
from vsched_lib.model import error_change
from vsched_lib.tests import error_profiles


class TestChanges(base.BaseTestCase):
    def point(self, samples, **where):
        return error_profiles.point(samples, **where)

    def draw(self, seed, spread_ppm, shift_ppm=0, n=180):
        source = random.Random(seed)
        return [round(source.gauss(shift_ppm, spread_ppm)) for _ in range(n)]

    def test_the_same_host_has_not_changed(self):
        for seed in range(50):
            self.assertEqual(
                [],
                error_change.changes(
                    [self.point(self.draw(seed, 20_000))],
                    [self.point(self.draw(seed + 1000, 20_000))],
                ),
            )

    def test_a_shift_is_seen(self):
        (change,) = error_change.changes(
            [self.point(self.draw(1, 10_000))],
            [self.point(self.draw(2, 10_000, -50_000))],
        )
        self.assertGreater(change.after_ppm, change.before_ppm)
        self.assertGreater(change.distance, 0.9)

    def test_what_is_real_and_does_not_matter_is_not_told(self):
        self.assertEqual(
            [],
            error_change.changes(
                [self.point([1000] * 500)], [self.point([2000] * 500)]
            ),
        )

    def test_few_samples_show_little(self):
        self.assertEqual(
            [],
            error_change.changes(
                [self.point([0] * 6)], [self.point([-100_000] * 6)]
            ),
        )

    def test_the_largest_change_comes_first(self):
        found = error_change.changes(
            [
                self.point([0] * 200, share_ppm=share)
                for share in (100_000, 200_000)
            ],
            [
                self.point([-10_000] * 200, share_ppm=100_000),
                self.point([-90_000] * 200, share_ppm=200_000),
            ],
        )
        self.assertEqual(
            [200_000, 100_000], [change.share_ppm for change in found]
        )

    def test_only_like_is_compared_with_like(self):
        before = [self.point([0] * 200)]
        for where in (
            {'share_ppm': 110_000},
            {'contenders': 1},
            {'period_us': 20_000},
            {'backend': 'cfs'},
        ):
            self.assertEqual(
                [],
                error_change.changes(
                    before, [self.point([-90_000] * 200, **where)]
                ),
            )

    def test_distance(self):
        one = error.statistics([-10_000] * 10)
        self.assertEqual(0, error_change.ks_distance(one, one))
        self.assertEqual(
            1, error_change.ks_distance(one, error.statistics([10_000] * 7))
        )
        self.assertAlmostEqual(
            0.5,
            error_change.ks_distance(
                one, error.statistics([-10_000] * 5 + [10_000] * 5)
            ),
        )
