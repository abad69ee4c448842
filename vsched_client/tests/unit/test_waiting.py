# SPDX-License-Identifier: Apache-2.0

"""Polling: delays, time limits."""

from oslotest import base

from vsched_client import errors
from vsched_client import waiting


class PollTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.slept = []
        self.seen = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def poll(self, results, timeout_s=60.0):
        results = iter(results)
        return waiting.poll(
            lambda: next(results),
            lambda one: one == 'done',
            timeout_s,
            'it has not ended',
            self.seen.append,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def test_an_answer_at_once(self):
        self.assertEqual('done', self.poll(['done']))
        self.assertEqual([], self.slept)

    def test_delays_grow_to_a_bound(self):
        self.poll(['a'] * 9 + ['done'])
        self.assertEqual(0.2, self.slept[0])
        self.assertEqual(sorted(self.slept), self.slept)
        self.assertEqual(2.0, self.slept[-1])
        self.assertEqual(['a'] * 9 + ['done'], self.seen)

    def test_time_limit(self):
        error = self.assertRaises(
            errors.TimedOut, self.poll, ['a'] * 20 + ['done'], 5.0
        )
        self.assertEqual('it has not ended within 5 s', str(error))
        self.assertEqual('a', error.last)
        self.assertAlmostEqual(5.0, self.now)

    def test_an_answer_at_the_last_moment(self):
        self.assertEqual('done', self.poll(['a', 'done'], 0.05))
