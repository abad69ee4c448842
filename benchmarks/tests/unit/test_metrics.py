# SPDX-License-Identifier: Apache-2.0

import time

from benchmarks import metrics
from vsched_api.tests import base


class SeriesTestCase(base.TestCase):
    def test_the_fleet_is_whole(self):
        found = metrics._serve(self.conf, 3, 1)
        self.assertEqual(15, found['instances'])
        self.assertEqual(6.0, found['series_per_instance'])
        self.assertLess(0, found['scrape_kb'])

    def test_comments_are_no_series(self):
        self.assertEqual(
            2, metrics._series('# HELP a b\n# TYPE a gauge\na 1\nb{c="#"} 2\n')
        )

    def test_what_is_left_out_is_noticed(self):
        self.conf.set_override('max_instances', 4, 'metrics')
        self.assertRaises(AssertionError, metrics._serve, self.conf, 1, 1)


class _Prometheus:
    def __init__(self, *moments, value='0'):
        self.moments = moments
        self.value = value

    def ask(self, path, **query):
        return {
            'result': [
                {'values': [[moment, self.value] for moment in moments]}
                for moments in self.moments
            ]
        }


class AlwaysTestCase(base.TestCase):
    def always(self, *moments):
        return metrics._always(_Prometheus(*moments), 'x', 100.0, 130.0)

    def test_each_step(self):
        self.assertTrue(self.always([100.0, 115.0, 130.0]))
        # By one series and then another one.
        self.assertTrue(self.always([100.0, 115.0], [130.0]))

    def test_a_step_without_anything(self):
        self.assertFalse(self.always())
        self.assertFalse(self.always([100.0, 130.0]))

    def test_no_number(self):
        self.assertFalse(
            metrics._always(
                _Prometheus([100.0, 115.0, 130.0], value='NaN'),
                'x',
                100.0,
                130.0,
            )
        )

    def test_the_steps_of_a_full_run(self):
        now = time.time()
        steps = range(
            0, metrics.SCRAPED_S - metrics.WARM_S + 1, metrics.STEP_S
        )
        self.assertTrue(
            metrics._always(
                _Prometheus([now + one for one in steps]),
                'x',
                now,
                now + metrics.SCRAPED_S - metrics.WARM_S,
            )
        )
