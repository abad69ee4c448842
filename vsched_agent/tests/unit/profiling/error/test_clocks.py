# SPDX-License-Identifier: Apache-2.0

import errno
import os
import subprocess
import threading
import time

from oslotest import base

from vsched_agent.privileged import clocks as privileged
from vsched_agent.privileged import ownership
from vsched_agent.profiling.error import clocks
from vsched_agent.tests import in_process


class TestExact(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(privileged.perf_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.clocks = clocks.Exact()
        self.own = threading.get_native_id()
        try:
            self.clocks.watch([self.own])
        except OSError as problem:
            self.skipTest('no perf events for this user: %s' % problem)
        self.addCleanup(self.clocks.leave, [self.own])

    def burn(self):
        """Run for 20 ms; return what was counted, and more than the time."""
        (first,) = self.clocks.look([self.own])
        until_ns = time.thread_time_ns() + 20_000_000
        while time.thread_time_ns() < until_ns:
            pass
        (second,) = self.clocks.look([self.own])
        ran_ns = second.ran_ns - first.ran_ns
        return ran_ns, ran_ns - (second.at_ns - first.at_ns)

    def test_it_counts_what_runs_and_not_what_sleeps(self):
        ran_ns, beyond_ns = zip(*(self.burn() for _ in range(5)), strict=True)
        self.assertGreaterEqual(min(ran_ns), 19_000_000)
        # The two clocks are read one after the other; between them the thread
        # may have to wait, but not each time.
        self.assertLessEqual(min(beyond_ns), 1_000_000)
        (first,) = self.clocks.look([self.own])
        threading.Event().wait(0.5)
        (second,) = self.clocks.look([self.own])
        # All but what it slept: a CPU that is stolen while it runs counts.
        self.assertLess(
            second.ran_ns - first.ran_ns,
            second.at_ns - first.at_ns - 300_000_000,
        )

    def test_the_gone_can_not_be_watched(self):
        gone = subprocess.Popen(['true'])
        gone.wait()
        problem = self.assertRaises(
            OSError, self.clocks.watch, [self.own, gone.pid]
        )
        self.assertEqual(errno.ESRCH, problem.errno)
        self.assertEqual({}, privileged._open)

    def test_so_many_and_no_more(self):
        self.patch(privileged, 'MOST', 1)
        self.patch(ownership, 'refusals', lambda tids: {})
        self.assertRaises(ValueError, self.clocks.watch, [os.getppid()])

    def test_watched_twice_and_left_twice(self):
        self.clocks.watch([self.own])
        self.clocks.leave([self.own])
        self.clocks.leave([self.own])
        self.assertRaises(KeyError, self.clocks.look, [self.own])


class TestTicking(base.BaseTestCase):
    def test_own_thread(self):
        ticking = clocks.Ticking()
        own = threading.get_native_id()
        (first,) = ticking.look([own])
        (second,) = ticking.look([own])
        self.assertGreaterEqual(second.ran_ns, first.ran_ns)
        self.assertGreater(second.at_ns, first.at_ns)

    def test_the_gone(self):
        self.assertRaises(ProcessLookupError, clocks.Ticking().look, [1 << 23])

    def test_best_falls_back(self):
        def fail(tids):
            raise RuntimeError('the helper does not start')

        self.patch(privileged, 'open_clocks', fail)
        self.assertIsInstance(clocks.best(), clocks.Ticking)
