# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import request_rig


class FiguresTestCase(base.BaseTestCase):
    def test_figures(self):
        found = request_rig.Measured(
            [1.0] * 95 + [5.0] * 4 + [1000.0],
            [2.0] * 100,
            [0.25, 0.35],
            0.1,
            0.02,
            1234.56,
        ).figures(late_ms=4.0)
        self.assertEqual(
            {
                'requests': 100,
                'mean_ms': 11.15,
                'p50_ms': 1.0,
                'p95_ms': 1.0,
                'p99_ms': 5.0,
                'max_ms': 1000.0,
                'lost': 1,
                'late': 5,
                'client_mean_ms': 2.0,
                'client_p50_ms': 2.0,
                'client_p95_ms': 2.0,
                'client_p99_ms': 2.0,
                'client_max_ms': 2.0,
                'hog_share': 0.3,
                'guest_share': 0.1,
                'host_share': 0.02,
                'switches_per_s': 1234.6,
            },
            found,
        )

    def test_spreads_of_repeats(self):
        self.assertEqual(
            {
                'a': {
                    'median': 2.0,
                    'least': 1.0,
                    'most': 4.0,
                    'all': [4.0, 1.0, 2.0],
                }
            },
            request_rig.spreads([{'a': 4.0}, {'a': 1.0}, {'a': 2.0}]),
        )

    def test_percentile_of_a_few(self):
        self.assertEqual(3.0, request_rig.percentile([1.0, 3.0], 99))
        self.assertEqual(1.0, request_rig.percentile([1.0, 3.0], 50))


class HogsTestCase(base.BaseTestCase):
    def test_what_hogs_take(self):
        self.assertEqual(1100, request_rig.Hogs.reserved_mcpu(5, 4_400))
        self.assertEqual(0, request_rig.Hogs.reserved_mcpu(5, 0))


class SteadyTestCase(base.BaseTestCase):
    def test_until_it_changes_no_longer(self):
        values = iter((1, 2, 2, 2))
        clock = iter(range(100))
        self.patch(request_rig.agent_guests, 'pause', lambda seconds: None)
        self.patch(request_rig.time, 'monotonic', lambda: next(clock))
        request_rig.await_steady(lambda: next(values, 2), 3, 90)
        self.assertEqual(2, next(values, 2))

    def test_it_changes_still(self):
        values = iter(range(1000))
        clock = iter(range(1000))
        self.patch(request_rig.agent_guests, 'pause', lambda seconds: None)
        self.patch(request_rig.time, 'monotonic', lambda: next(clock))
        self.assertRaises(
            RuntimeError, request_rig.await_steady, lambda: next(values), 5, 20
        )
