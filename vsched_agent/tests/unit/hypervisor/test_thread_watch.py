# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Threads that come without an event."""

import threading

from oslotest import base as test_base

from vsched_agent.hypervisor import thread_farm
from vsched_agent.hypervisor import thread_watch


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
            0.01, lambda: [thread_watch.Watched(
                'u', self.farm.pid, threads)], self.suspect)

    def test_same_number(self):
        self.watch(thread_watch.count(self.farm.pid)).look()
        self.assertEqual([], self.suspects)

    def test_another_number(self):
        watch = self.watch(thread_watch.count(self.farm.pid))
        self.farm.add(1)
        watch.look()
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
