# SPDX-License-Identifier: Apache-2.0

"""Threads that come without an event."""

import threading

from oslotest import base as test_base

from vsched_agent.hypervisor import thread_watch
from vsched_agent.tests import thread_farm


class ThreadWatchTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.farm = thread_farm.ThreadFarm()
        self.addCleanup(self.farm.close)
        self.farm.add(1)
        self.suspects = []
        self.seen = threading.Event()

    def suspect(self, uuid):
        self.suspects.append(uuid)
        self.seen.set()

    def watch(self, threads):
        return thread_watch.ThreadWatch(
            0.01,
            lambda: [thread_watch.Watched('u', self.farm.pid, threads)],
            self.suspect,
        )

    def test_same_number(self):
        self.watch(thread_watch.count(self.farm.pid)).check()
        self.assertEqual([], self.suspects)

    def test_another_number(self):
        watch = self.watch(thread_watch.count(self.farm.pid))
        self.farm.add(1)
        watch.check()
        self.assertEqual(['u'], self.suspects)

    def test_by_its_own_thread(self):
        watch = self.watch(99)
        watch.start()
        self.addCleanup(watch.stop)
        self.assertTrue(self.seen.wait(30))

    def test_an_error_is_survived(self):
        rounds = threading.Semaphore(0)

        def fail():
            rounds.release()
            raise RuntimeError('on purpose')

        watch = thread_watch.ThreadWatch(0.01, fail, self.suspect)
        watch.start()
        self.addCleanup(watch.stop)
        for _ in range(2):
            self.assertTrue(rounds.acquire(timeout=30))

    def test_count(self):
        self.assertEqual(2, thread_watch.count(self.farm.pid))
        self.assertEqual(0, thread_watch.count(1 << 22))
