# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import irmos


class TimesTestCase(base.BaseTestCase):
    def test_misses(self):
        found = irmos.times(
            [(0, 2.0, 200)] * 7
            + [(0, 20.0, 200), (0, 21.0, 200)]
            + [(0, 5000.0, 0)]
        )
        self.assertEqual(
            (10, 2, 1, 5000.0),
            tuple(
                found[name]
                for name in ('requests', 'misses', 'failed', 'max_ms')
            ),
        )

    def test_an_answer_without_the_file_is_a_miss(self):
        found = irmos.times([(0, 2.0, 200), (0, 1.0, 404)])
        self.assertEqual((1, 1), (found['misses'], found['failed']))

    def test_a_neighbour_that_is_not_loaded(self):
        lost = [(0, 5000.0, 0), (0, 1.0, 503)]
        self.assertEqual(0, irmos.neighbour_requests(0, []))
        self.assertEqual(
            1, irmos.neighbour_requests(200, [*lost, (0, 2.0, 200)])
        )
        self.assertRaises(RuntimeError, irmos.neighbour_requests, 200, lost)


class MetricsTestCase(base.BaseTestCase):
    def test_headline(self):
        def figures(max_ms, misses=0):
            return {
                'requests': 100,
                'misses': misses,
                'max_ms': max_ms,
                'mean_ms': max_ms / 2,
            }

        found = {
            name: [figures(5.0), figures(6.0), figures(8.0)]
            for name in irmos.VARIANTS
        }
        found[irmos.WITHOUT] = [figures(30.0, 30), figures(40.0, 36)] * 2
        found[irmos.SHAPED] = [figures(5.0), figures(7.0, 1), figures(9.0, 1)]
        metrics = irmos.metrics(found)
        self.assertEqual(2, metrics['misses'])
        self.assertEqual((7.0, 3.5), (metrics['max_ms'], metrics['mean_ms']))
        self.assertEqual(33.0, metrics['misses_without_pct'])
        self.assertEqual(1.125, metrics['max_vs_unloaded'])
        self.assertEqual(set(irmos.ABOUT.units), set(metrics))
