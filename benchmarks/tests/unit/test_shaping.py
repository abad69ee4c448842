# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import shaping


def figures(p99_ms, **fields):
    return {
        'p99_ms': p99_ms,
        'client_p99_ms': p99_ms + 0.5,
        'late': 0,
        'hog_shares': [0.22, 0.22],
        'switches_per_s': 1000.0,
        'divisions': [[[1, 1]], [[1, 1]]],
        **fields,
    }


class MetricsTestCase(base.BaseTestCase):
    def test_medians_of_ratios(self):
        found = {
            name: [figures(10.0, late=2) for _ in range(3)]
            for name in shaping.VARIANTS
        }
        found[shaping.UNLOADED] = [figures(one) for one in (1.0, 1.0, 2.0)]
        found[shaping.FIXED] = [
            figures(one, late=1) for one in (8.0, 10.0, 4.0)
        ]
        found[shaping.SHAPED] = [
            figures(one, hog_shares=[0.22, 0.2178], switches_per_s=1200.0)
            for one in (1.0, 1.5, 1.0)
        ]
        metrics = shaping.metrics(found)
        self.assertEqual(1.0, metrics['p99_vs_unloaded'])
        self.assertEqual(0.15, metrics['p99_vs_fixed'])
        self.assertEqual(0.1, metrics['p99_vs_default'])
        self.assertEqual(1.0, metrics['hog_share_change_pct'])
        self.assertEqual(
            (0, 3), (metrics['late_shaped'], metrics['late_fixed'])
        )
        self.assertEqual(-20.0, metrics['switches_cut_pct'])
        self.assertEqual(
            set(shaping.ABOUT.units), set(metrics), 'a unit for each metric'
        )
