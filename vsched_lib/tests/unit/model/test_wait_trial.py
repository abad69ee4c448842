# SPDX-License-Identifier: Apache-2.0

"""Divisions that do not shorten waits are taken back."""

import hypothesis
from hypothesis import strategies
from oslotest import base

from vsched_lib.model import wait_trial

MS = 1_000_000
PERIOD_NS = 20 * MS


class TrialCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now_s = 100.0
        self.trial = wait_trial.WaitTrial()

    def run_for(self, seconds, granularity, wait_ms, packets=50):
        """Observe intervals of a second."""
        for _ in range(seconds):
            self.now_s += 1.0
            self.trial.observe(
                self.now_s,
                packets,
                int(packets * wait_ms * MS),
                granularity,
                PERIOD_NS,
            )

    def limit(self):
        limit = self.trial.limit(self.now_s)
        return None if limit == wait_trial.UNLIMITED else limit


class TestTrial(TrialCase):
    def test_shorter_waits_are_kept(self):
        self.run_for(3, 1, 5.0)
        self.run_for(20, 4, 1.0)
        self.assertIsNone(self.limit())
        self.assertIsNone(self.trial.failed)

    def test_longer_waits_are_taken_back(self):
        self.run_for(3, 1, 2.0)
        self.run_for(4, 4, 5.0)
        self.assertIsNone(self.limit())
        self.run_for(1, 4, 5.0)
        self.assertEqual(1, self.limit())
        self.assertEqual((4, 2.0 * MS, 5.0 * MS), self.trial.failed)

    def test_equal_waits_are_taken_back(self):
        self.run_for(3, 2, 2.0)
        self.run_for(6, 4, 1.9)
        self.assertEqual(2, self.limit())

    def test_nothing_to_gain_is_no_failure(self):
        self.run_for(3, 1, 0.05)
        self.run_for(6, 4, 0.1)
        self.assertIsNone(self.limit())

    def test_it_is_tried_again_later_and_later(self):
        for retry_s in (60, 120, 240):
            self.run_for(3, 1, 2.0)
            self.run_for(5, 4, 5.0)
            self.assertEqual(1, self.limit())
            self.run_for(retry_s - 1, 1, 2.0)
            self.assertEqual(1, self.limit())
            self.run_for(2, 1, 2.0)
            self.assertIsNone(self.limit())

    def test_success_is_a_new_start(self):
        self.run_for(3, 1, 2.0)
        self.run_for(5, 4, 5.0)
        self.run_for(70, 1, 5.0)
        self.run_for(5, 4, 1.0)
        self.run_for(3, 1, 2.0)
        self.run_for(5, 4, 5.0)
        self.now_s += 61
        self.assertIsNone(self.limit())

    def test_few_packets_show_nothing(self):
        self.run_for(3, 1, 2.0, packets=5)
        self.run_for(20, 4, 9.0)
        self.assertIsNone(self.limit())

    def test_few_packets_after_it_are_waited_for(self):
        self.run_for(3, 1, 2.0)
        self.run_for(6, 4, 9.0, packets=5)
        self.assertIsNone(self.limit())
        self.run_for(3, 4, 9.0, packets=5)
        self.assertEqual(1, self.limit())

    def test_a_granularity_of_an_earlier_agent_is_not_judged(self):
        self.run_for(20, 4, 9.0)
        self.assertIsNone(self.limit())

    def test_only_the_window_before_it_counts(self):
        self.run_for(30, 1, 9.0)
        self.run_for(10, 1, 2.0)
        self.run_for(5, 4, 3.0)
        self.assertEqual(1, self.limit())

    def test_a_coarser_division_is_not_judged(self):
        self.run_for(3, 4, 1.0)
        self.run_for(20, 2, 9.0)
        self.assertIsNone(self.limit())

    @hypothesis.given(
        strategies.lists(
            strategies.tuples(
                strategies.integers(0, 10_000),
                strategies.integers(0, 10**12),
                strategies.sampled_from((1, 2, 4, 8)),
            ),
            max_size=60,
        )
    )
    def test_a_limit_is_coarser_than_what_was_tried(self, intervals):
        trial = wait_trial.WaitTrial()
        for second, (packets, wait_ns, granularity) in enumerate(intervals):
            trial.observe(float(second), packets, wait_ns, granularity, 10**7)
            if trial.limit(second) != wait_trial.UNLIMITED:
                self.assertLess(trial.limit(second), trial.failed.granularity)
