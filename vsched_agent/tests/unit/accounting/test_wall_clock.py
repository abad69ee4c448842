# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from vsched_agent.accounting import wall_clock

MS = 1_000_000


class TestOffset(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now_ns = 50 * MS
        self.ahead_ns = 10**18
        #: What passes before each reading of a clock; nothing after the last.
        self.delays_ns = []
        self.patch(wall_clock.time, 'monotonic_ns', self.monotonic_ns)
        self.patch(
            wall_clock.time,
            'time_ns',
            lambda: self.monotonic_ns() + self.ahead_ns,
        )

    def monotonic_ns(self):
        self.now_ns += self.delays_ns.pop(0) if self.delays_ns else 0
        return self.now_ns

    def test_both_clocks_at_once(self):
        self.assertEqual(self.ahead_ns, wall_clock.offset_ns())

    def test_a_thread_that_waits_between_the_clocks(self):
        self.delays_ns = [0, 54 * MS, 0]
        self.assertEqual(self.ahead_ns, wall_clock.offset_ns())

    def test_a_thread_that_waits_each_time(self):
        self.delays_ns = [0, 9 * MS, 0, 0, 2 * MS, 0] + [0, 9 * MS, 0] * 3
        self.assertEqual(self.ahead_ns + 1 * MS, wall_clock.offset_ns())

    def test_a_clock_that_was_set(self):
        wall_clock.offset_ns()
        self.ahead_ns -= 3600 * 1000 * MS
        self.assertEqual(self.ahead_ns, wall_clock.offset_ns())

    def test_seconds(self):
        self.assertEqual(
            1000.25, wall_clock.seconds(250 * MS, 1000 * 1000 * MS)
        )
