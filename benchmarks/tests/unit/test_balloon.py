# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import balloon


def took(seconds, **fields):
    return [balloon.Took(one, 1.0, **fields) for one in seconds]


class MetricsTest(base.BaseTestCase):
    def test_gains_and_losses(self):
        found = {}
        for kind, ours_s in (
            ('locks', 4.0),
            ('pipeline', 6.0),
            ('memory', 10.0),
            ('spin', 10.5),
        ):
            found[kind, 'default'] = took([10.0])
            found[kind, 'ours'] = took(
                [ours_s], trigger_s=4.0, offline_s=(0.2, 0.4)
            )
            found[kind, 'pinned'] = took([10.0])
        self.assertEqual(
            {
                'paired_time_cut_pct': 50.0,
                'paired_loser_loss_pct': 5.0,
                'paired_loser_loss_max_pct': 5.0,
                'paired_worst_loss_pct': 5.0,
                'offline_4to1_s': 0.3,
                'trigger_s': 4.0,
            },
            balloon._metrics(found),
        )

    def test_outliers_of_the_default_do_not_hide_a_loss(self):
        # By means it would be a gain: 60.5 instead of 98 s.
        found = {}
        for kind in balloon.KINDS:
            found[kind, 'default'] = took([10.0, 10.0, 10.0, 30.0, 38.0])
            found[kind, 'ours'] = took([12.0, 12.1, 12.2, 12.1, 12.1])
        metrics = balloon._metrics(found)
        self.assertEqual(20.0, metrics['paired_loser_loss_pct'])
        self.assertEqual(20.0, metrics['paired_worst_loss_pct'])
        self.assertEqual(22.0, metrics['paired_loser_loss_max_pct'])
        self.assertEqual(0.0, metrics['paired_time_cut_pct'])

    def test_runs_are_paired_by_repeat(self):
        found = {
            ('spin', 'default'): took([10.0, 20.0]),
            ('spin', 'ours'): took([11.0, 24.0]),
        }
        self.assertEqual(
            [10.0, 20.0],
            [round(one, 6) for one in balloon.changes_pct(found, 'spin')],
        )

    def test_what_a_guest_tells(self):
        line = b'{"work": "spin", "seconds": 1.500}'
        self.assertFalse(balloon._told(b'noise\r\n'))
        # Half of a line is none.
        self.assertFalse(balloon._told(line))
        self.assertTrue(balloon._told(b'noise\r\n' + line + b'\r\n'))
