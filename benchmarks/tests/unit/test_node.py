# SPDX-License-Identifier: Apache-2.0

from matplotlib import figure as figures
from oslotest import base

from benchmarks import frame
from benchmarks import lab
from benchmarks import node
from benchmarks.tests import runs

_INSIDE = {
    'share': 0.6,
    'steal': 0.39,
    'steal_gap_pct': 1.0,
    'conservation_gap_pct': 0.2,
    'yields_alone': 0.01,
    'yields_contended': 2.0,
    'tick_p99_pct': 9.0,
    'hrtick_p99_pct': 3.0,
}


class TestNode(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.asked = []

        def inside(release, seconds, load_s):
            self.asked.append((release, seconds, load_s))
            count = len(self.asked)
            return {
                **_INSIDE,
                'steal_gap_pct': float(count),
                'yields_alone': float(count),
                'yields_contended': float(count),
            }

        self.patch(node, '_inside', inside)
        self.patch(
            lab,
            'lane',
            lambda option: {'passed': 9.0, 'failed': 1.0, 'seconds': 600.0},
        )
        self.patch(frame.os, 'environ', {'VSCHED_HOST_HELD': '1'})

    def test_every_metric_is_described(self):
        variants, metrics = runs.finish(node.run(True))
        self.assertEqual(set(node.ABOUT.units), set(metrics))
        self.assertEqual([('6.12', 15, 15), ('6.1', 15, 15)], self.asked)
        self.assertEqual(
            (2.0, 2.0, 1.0, 10.0, 0.9),
            (
                metrics['steal_gap_pct'],
                metrics['yields_alone'],
                metrics['yields_contended'],
                metrics['lane_minutes'],
                metrics['suites_passed'],
            ),
        )
        self.assertEqual(
            {one.metric for one in node.ABOUT.targets} - set(metrics), set()
        )

    def test_accounts_are_compared_for_an_hour(self):
        runs.finish(node.run(False))
        self.assertEqual([('6.12', 120, 3600), ('6.1', 120, 600)], self.asked)

    def test_a_picture(self):
        class Record:
            variants = {'linux-6.12': _INSIDE, 'lane': {'passed': 9.0}}

        figure = figures.Figure()
        node.draw(Record(), figure)
        self.assertEqual(2, len(figure.axes))

    def test_counts(self):
        self.assertEqual(
            {'passed': 12.0, 'failed': 1.0, 'skipped': 2.0},
            lab.counts('x\n12 passed, 1 failed, 2 skipped\n'),
        )
        self.assertRaises(frame.Unavailable, lab.counts, 'killed')
