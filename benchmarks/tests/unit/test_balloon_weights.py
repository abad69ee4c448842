# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import balloon_weights


class DividedTest(base.BaseTestCase):
    def test_the_ratio_is_that_of_means(self):
        divided = balloon_weights.Divided(
            (1.333, 0.667), (1, 1), ((0.9, 0.4), (0.7, 0.4)), (0.0, 0.0)
        )
        self.assertAlmostEqual(2.0, divided.ratio)
        figures = divided.figures()
        self.assertEqual([0.9, 0.7], figures['heavy_cpus'])
        self.assertEqual([0.4, 0.4], figures['light_cpus'])

    def test_weights_alone_are_without_reservations(self):
        self.assertEqual(
            ({}, {}), balloon_weights.CASES[balloon_weights.WEIGHTS_CASE]
        )
        self.assertIn(
            'vsched:cpu_runtime_us',
            balloon_weights.CASES[balloon_weights.RESERVED_CASE][0],
        )

    def test_what_is_promised_is_in_the_weights_proportion(self):
        heavy, light = balloon_weights.WEIGHTS
        self.assertEqual(2, heavy / light)
        heavy_us, light_us = balloon_weights.RUNTIMES_US
        self.assertEqual(2, heavy_us / light_us)
