# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import balloon
from benchmarks import balloon_offline


class MetricsTest(base.BaseTestCase):
    def test_medians_over_all_kinds(self):
        found = {
            (kind, turn_us, count): [1.0 + number, 2.0 * count]
            for number, kind in enumerate(balloon.KINDS)
            for turn_us in (0, balloon_offline.TURN_US)
            for count in (1, 2)
        }
        for kind in balloon.KINDS:
            found[kind, 0, 2] = [9.0]
        metrics = balloon_offline._metrics(found)
        # 1, 2, 3, 4 and as often 2 or 4.
        self.assertEqual(2.0, metrics['one_s'])
        self.assertEqual(4.0, metrics['two_s'])
        self.assertEqual(2.0, metrics['two_to_one'])
        self.assertEqual(2.0, metrics['one_at_the_tick_s'])
        self.assertEqual(9.0, metrics['two_at_the_tick_s'])
        self.assertEqual(set(balloon_offline.ABOUT.units), set(metrics))
