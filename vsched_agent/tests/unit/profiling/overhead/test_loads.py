# SPDX-License-Identifier: Apache-2.0

"""What loads a run makes, and in which order."""

import collections
import json

from oslotest import base

from vsched_agent.profiling.overhead import loads


class PointsTest(base.BaseTestCase):
    def test_four_experiments_and_idleness(self):
        found = loads.points(loads.FULL)
        self.assertEqual(
            set(loads.Experiment), {load.experiment for _, load in found}
        )
        self.assertEqual(len(found), len({key for key, _ in found}))
        counts = collections.Counter(load.experiment for _, load in found)
        self.assertEqual(18, counts[loads.Experiment.NET_RX])
        self.assertEqual(12, counts[loads.Experiment.DISK_WRITE])
        self.assertEqual(4, counts[loads.Experiment.IDLE])

    def test_every_kind_comes_one_by_one_and_in_bursts(self):
        for plan in (loads.FULL, loads.QUICK):
            for experiment in set(loads.Experiment) - {loads.Experiment.IDLE}:
                mine = [
                    load
                    for _, load in loads.points(plan)
                    if load.experiment is experiment
                ]
                self.assertGreater(len({one.rate for one in mine}), 1)
                self.assertGreater(len({one.burst for one in mine}), 1)

    def test_the_order_is_shuffled_and_always_the_same(self):
        found = loads.points(loads.FULL)
        self.assertEqual(found, loads.points(loads.FULL))
        rates = [load.rate for _, load in found]
        self.assertNotEqual(sorted(rates), rates)

    def test_length(self):
        self.assertLess(loads.seconds(loads.QUICK), 90)
        self.assertLess(loads.seconds(loads.FULL), 400)

    def test_in_words(self):
        load = loads.Load(loads.Experiment.NET_TX, 500, 4, 64)
        self.assertEqual(
            'net-tx, 500 a second of 64 bytes in bursts of 4', str(load)
        )
        self.assertEqual('net-tx 500 4 64', load.key)
        self.assertEqual('idle', str(loads.Load(loads.Experiment.IDLE)))

    def test_a_plan_becomes_json(self):
        self.assertEqual(
            [250, 1000, 2500],
            json.loads(json.dumps(loads.FULL.to_dict()))['net_rates'],
        )
