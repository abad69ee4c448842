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

import errno
import os
import threading
import time

from oslotest import base

from vsched_agent.privileged import context
from vsched_agent.privileged import turns

_PATIENCE_S = 10.0


class FollowerTest(base.BaseTestCase):

    def test_a_thread_of_ones_own(self):
        allowed = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, allowed)
        one = turns.Follower(threading.get_native_id())
        self.addCleanup(one.close)
        for cpu in sorted(allowed):
            os.sched_setaffinity(0, {cpu})
            self.assertEqual(cpu, one.cpu())

    def test_one_that_is_gone(self):
        tids, end = [], threading.Event()

        def run():
            tids.append(threading.get_native_id())
            end.wait(_PATIENCE_S)

        thread = threading.Thread(target=run)
        thread.start()
        while not tids:
            time.sleep(0.001)
        one = turns.Follower(tids[0])
        self.addCleanup(one.close)
        end.set()
        thread.join()
        self._await_gone(tids[0])
        self.assertRaises(OSError, one.cpu)
        self.assertRaises(OSError, turns.Follower, tids[0])

    def _await_gone(self, tid):
        # Python has joined a thread a little before the kernel has ended it.
        end_s = time.monotonic() + _PATIENCE_S
        while os.path.exists('/proc/%d' % tid):
            self.assertLess(time.monotonic(), end_s)
            time.sleep(0.001)


class TurnerTest(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.classes, self.places = [], []
        self.patch(os, 'sched_setscheduler', self._enter)
        self.patch(os, 'sched_setaffinity', self._move)
        self.error = None
        self.turner = turns.Turner()
        self.addCleanup(self.turner.stop)

    def _enter(self, tid, policy, param):
        if self.error is not None:
            raise self.error
        self.classes.append((tid, policy, param.sched_priority))

    def _move(self, tid, cpus):
        self.places.append((tid, cpus))

    def await_that(self, predicate):
        give_up_s = time.monotonic() + _PATIENCE_S
        while not predicate():
            self.assertLess(time.monotonic(), give_up_s)
            time.sleep(0.001)

    def test_it_passes_by_until_the_end(self):
        name = self.turner.begin([os.getpid()], 500, _PATIENCE_S)
        self.await_that(lambda: len(self.places) > 3)
        self.assertTrue(self.turner.alive)
        self.assertEqual([(0, os.SCHED_FIFO, 1)], self.classes)
        self.turner.end(name)
        self.await_that(lambda: not self.turner.alive)
        self.assertEqual({0}, {tid for tid, _ in self.places})
        for _, cpus in self.places:
            self.assertEqual(1, len(cpus))
        # Nothing is to be ended any more.
        self.turner.end(name)

    def test_it_ends_by_itself(self):
        self.turner.begin([os.getpid()], 500, 0.01)
        self.await_that(lambda: not self.turner.alive)

    def test_it_ends_by_itself_whatever_was_asked_for(self):
        self.patch(turns, 'LONGEST_S', 0.01)
        self.turner.begin([os.getpid()], 500, 1e9)
        self.await_that(lambda: not self.turner.alive)

    def test_several_at_once(self):
        first = self.turner.begin([os.getpid()], 500, _PATIENCE_S)
        second = self.turner.begin([os.getpid()], 900, _PATIENCE_S)
        self.assertNotEqual(first, second)
        self.turner.end(first)
        seen = len(self.places)
        self.await_that(lambda: len(self.places) > seen + 3)
        self.assertEqual(1, len(self.classes))
        self.turner.stop()
        self.assertFalse(self.turner.alive)

    def test_again(self):
        for _ in range(3):
            self.turner.end(self.turner.begin(
                [os.getpid()], 500, _PATIENCE_S))
            self.await_that(lambda: not self.turner.alive)

    def test_threads_that_are_gone(self):
        # No process has that number.
        self.turner.begin([1 << 22], 500, _PATIENCE_S)
        self.await_that(lambda: self.classes)
        self.turner.stop()
        self.assertEqual([], self.places)

    def test_the_kernel_refuses(self):
        self.error = OSError(errno.EPERM, 'no')
        self.assertRaises(OSError, self.turner.begin, [os.getpid()], 500,
                          _PATIENCE_S)
        self.assertFalse(self.turner.alive)
        self.error = None
        self.turner.begin([os.getpid()], 500, _PATIENCE_S)
        self.assertTrue(self.turner.alive)

    def test_where_the_helper_may_not_be(self):
        def refuse(tid, cpus):
            self.places.append(cpus)
            raise OSError(errno.EINVAL, 'no')

        self.patch(os, 'sched_setaffinity', refuse)
        self.turner.begin([os.getpid()], 500, _PATIENCE_S)
        self.await_that(lambda: len(self.places) > 3)
        self.assertTrue(self.turner.alive)


class EntrypointsTest(base.BaseTestCase):

    def test_begin_and_end(self):
        self.patch(os, 'sched_setscheduler', lambda *_: None)
        self.patch(os, 'sched_setaffinity', lambda *_: None)
        with context.in_process(turns.turns_pctxt):
            turns.ready()
            self.addCleanup(turns._turner.stop)
            name = turns.begin([os.getpid()], 500, _PATIENCE_S)
            self.assertTrue(turns._turner.alive)
            turns.end(name)
            turns._turner.stop()
            self.assertFalse(turns._turner.alive)
