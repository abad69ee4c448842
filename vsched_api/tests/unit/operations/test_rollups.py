# SPDX-License-Identifier: Apache-2.0

"""Sums of samples, on SQLite."""

from vsched_api.operations import rollups as operations
from vsched_api.tests import base
from vsched_api.tests.suites import rollups


class TestRollups(rollups.Rollups, base.TestCase):
    """The suite, on a file."""


class TestSpread(base.TestCase):
    """When the hosts have their first turns."""

    HOSTS = 4

    def setUp(self):
        super().setUp()
        self.clock_s = 100.0
        self.stopped = False
        (self.one,) = base.uuids(1)
        self.agents = [
            self.agent('host-%d' % number) for number in range(self.HOSTS)
        ]
        self.report()

    def report(self):
        for agent in self.agents:
            agent.send(
                listed=False, usage=[base.sample(self.one, base.NOW)] * 2
            )

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.clock_s += seconds

    def fold(self, spread_s, rows=10):
        self.pauses = []
        return operations.fold(
            self.database,
            rows,
            lambda: self.stopped,
            lambda: self.clock_s,
            spread_s,
            self.pause,
        )

    def test_hosts_are_spread(self):
        self.assertEqual(8, self.fold(48.0))
        self.assertEqual([0.0, 12.0, 12.0, 12.0], self.pauses)

    def test_one_that_takes_long_delays_no_later_one(self):
        pause = self.pause

        def slow(seconds):
            pause(seconds)
            self.clock_s += 17.0 if len(self.pauses) == 1 else 0.0

        self.pause = slow
        self.assertEqual(8, self.fold(48.0))
        self.assertEqual([0.0, 0.0, 7.0, 12.0], self.pauses)

    def test_only_the_first_round_is(self):
        self.report()
        # Each host is folded in two transactions.
        self.assertEqual(16, self.fold(48.0, rows=2))
        self.assertEqual([0.0, 12.0, 12.0, 12.0], self.pauses)

    def test_they_need_not_be(self):
        self.assertEqual(8, self.fold(0.0))
        self.assertEqual([], self.pauses)

    def test_it_can_be_stopped(self):
        def stop(seconds):
            self.stopped = bool(seconds)

        self.pause = stop
        self.assertEqual(2, self.fold(48.0))
