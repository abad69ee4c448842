# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
import time

import hypothesis
from hypothesis import strategies
from oslotest import base

from vsched_agent.accounting import direct

MS = 1_000_000


class TestDirect(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.clocks = {7: 5000 * MS}
        self.meter = direct.DirectMeter(self.clocks.get)

    def used(self, guest_ms=0, pid=7, uuid='u', start_ticks=0):
        return self.meter.used(uuid, pid, guest_ms * MS, start_ticks) // MS

    def test_the_process_less_its_vcpus(self):
        self.assertEqual(0, self.used())
        self.clocks[7] += 900 * MS
        self.assertEqual(300, self.used(guest_ms=600))
        self.assertEqual(0, self.used())

    def test_clocks_that_disagree_for_a_moment(self):
        self.used()
        self.clocks[7] += 600 * MS
        self.assertEqual(0, self.used(guest_ms=604))
        self.clocks[7] += 604 * MS
        # The four of before are made up for.
        self.assertEqual(0, self.used(guest_ms=600))
        self.clocks[7] += 610 * MS
        self.assertEqual(10, self.used(guest_ms=600))

    def test_a_process_started_anew_counts_as_a_whole(self):
        self.used()
        self.clocks[8] = 50 * MS
        self.assertEqual(20, self.used(guest_ms=30, pid=8))

    def test_another_process_of_the_same_number(self):
        self.used()
        self.clocks[7] = 6000 * MS
        self.assertEqual(2000, self.used(guest_ms=4000, start_ticks=9))

    def test_one_that_has_ended(self):
        self.used()
        self.clocks.clear()
        self.assertEqual(0, self.used())
        self.clocks[7] = 99_000 * MS
        self.assertEqual(0, self.used())

    def test_forgotten(self):
        self.used()
        self.meter.forget('u')
        self.clocks[7] += 99 * MS
        self.assertEqual(0, self.used())

    @hypothesis.given(
        strategies.lists(
            strategies.tuples(
                strategies.integers(0, 2000),
                strategies.integers(0, 2000),
                strategies.integers(-4, 4),
            ),
            min_size=1,
            max_size=50,
        )
    )
    def test_nothing_is_lost_and_nothing_is_there_twice(self, passes):
        clocks = {1: 0}
        meter = direct.DirectMeter(clocks.get)
        meter.used('u', 1, 0)
        measured = true = shift = 0
        for guest, other, stale in passes:
            # The process's clock is ahead or behind by a tick at most.
            clocks[1] += guest + other + stale - shift
            shift = stale
            true += other
            measured += meter.used('u', 1, guest)
        self.assertTrue(true - 4 <= measured <= true + 8, (true, measured))


class TestProcessClock(base.BaseTestCase):
    def test_threads_that_have_ended_count_too(self):
        before = direct.process_ns(os.getpid())
        until = time.process_time_ns() + 20 * MS
        while time.process_time_ns() < until:
            pass
        self.assertGreaterEqual(
            direct.process_ns(os.getpid()) - before, 15 * MS
        )

    def test_another_process(self):
        other = subprocess.Popen(
            [sys.executable, '-c', 'input()'], stdin=subprocess.PIPE
        )
        self.addCleanup(other.communicate, b'\n')
        self.assertGreaterEqual(direct.process_ns(other.pid), 0)

    def test_one_that_has_ended(self):
        ended = subprocess.Popen(['true'])
        ended.wait()
        self.assertIsNone(direct.process_ns(ended.pid))
