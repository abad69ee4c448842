# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import node_yields
from vsched_agent.host import schedstat


class Guest:
    uuid = 'u'
    vcpu_tids = (1, 2)


class Channel:
    """Counts as often as it is told; each answer is the next of a list."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def yields(self, uuids):
        assert list(uuids) == ['u']
        return self.answers.pop(0)


class TestNodeYields(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.patch(node_yields.time, 'sleep', lambda seconds: None)
        self.stats = iter(
            schedstat.Counters(*one)
            for one in (
                (100, 0, 10),
                (100, 50, 20),
                (250, 100, 30),
                (150, 100, 20),
            )
        )
        self.patch(node_yields.schedstat, 'read', lambda tid: next(self.stats))

    def test_of_both_vcpus_in_the_meantime(self):
        channel = Channel({'u': {0: 5, 1: 5}}, {'u': {0: 35, 1: 35}})
        # 60 yields in 20 slices; 200 ns of running and 150 of waiting.
        self.assertEqual(
            (3.0, 150 / 350), node_yields._watch(Guest(), channel, 1)
        )

    def test_without_counters(self):
        self.assertRaises(
            RuntimeError, node_yields._watch, Guest(), Channel({}), 1
        )
