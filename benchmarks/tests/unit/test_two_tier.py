# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import two_tier


class TimesTestCase(base.BaseTestCase):
    def test_by_class(self):
        count = len(two_tier.CLASSES)
        found = two_tier.times(
            [(0, 10.0, 200), (count, 20.0, 200), (1, 5.0, 200), (4, 1.0, 502)]
        )
        self.assertEqual(
            (15.0, 20.0, 5.0),
            (
                found['home_mean_ms'],
                found['home_max_ms'],
                found['product_mean_ms'],
            ),
        )
        self.assertEqual(9.0, found['mean_ms'])
        self.assertEqual(1, found['failed'])
        self.assertNotIn('best_mean_ms', found)

    def test_paths_are_of_the_class_of_their_index(self):
        for place, path in enumerate(two_tier.PATHS):
            name = two_tier.CLASSES[place % len(two_tier.CLASSES)]
            self.assertTrue(path.startswith('/shop/%s?' % name), path)


class MetricsTestCase(base.BaseTestCase):
    def figures(self, mean_ms, max_ms):
        return {
            'mean_ms': mean_ms,
            'max_ms': max_ms,
            'switches_per_s': 1000.0,
            'hog_shares': [0.18] * 5,
            **{name + '_mean_ms': mean_ms for name in two_tier.CLASSES},
        }

    def test_cuts(self):
        found = {
            name: [self.figures(20.0, 80.0)] * 3 for name in two_tier.VARIANTS
        }
        found[two_tier.SHAPED] = [
            self.figures(*one)
            for one in ((10.0, 30.0), (12.0, 40.0), (15.0, 20.0))
        ]
        found[two_tier.IO_ONLY] = [self.figures(16.0, 88.0)] * 3
        for one in found[two_tier.SHAPED]:
            one['order_mean_ms'] = 18.0
        metrics = two_tier.metrics(found)
        self.assertEqual(40.0, metrics['mean_cut_pct'])
        self.assertEqual(62.5, metrics['worst_cut_pct'])
        self.assertEqual(10.0, metrics['least_class_cut_pct'])
        self.assertEqual(20.0, metrics['io_only_mean_cut_pct'])
        self.assertEqual(-10.0, metrics['io_only_worst_cut_pct'])
        self.assertEqual(0.0, metrics['vcpu_only_mean_cut_pct'])
        self.assertEqual(set(two_tier.ABOUT.units), set(metrics))
