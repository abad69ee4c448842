# SPDX-License-Identifier: Apache-2.0

import errno
import os
import threading
import time

from oslotest import base

from vsched_agent.privileged import ownership
from vsched_agent.privileged import preemption
from vsched_agent.tests import in_process

#: Only a hang takes longer.
_PATIENCE_S = 60.0


class CpuReaderTest(base.BaseTestCase):
    def test_a_thread_of_ones_own(self):
        allowed = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, allowed)
        one = preemption.CpuReader(threading.get_native_id())
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
        one = preemption.CpuReader(tids[0])
        self.addCleanup(one.close)
        end.set()
        thread.join()
        self._await_gone(tids[0])
        self.assertRaises(OSError, one.cpu)
        self.assertRaises(OSError, preemption.CpuReader, tids[0])

    def _await_gone(self, tid):
        # Python has joined a thread a little before the kernel has ended it.
        end_s = time.monotonic() + _PATIENCE_S
        while os.path.exists('/proc/%d' % tid):
            self.assertLess(time.monotonic(), end_s)
            time.sleep(0.001)


class ForcedPreemptionTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.classes, self.places = [], []
        self.patch(os, 'sched_setscheduler', self._enter)
        self.patch(os, 'sched_setaffinity', self._move)
        self.error = None
        self.preemption = preemption.ForcedPreemption()
        self.addCleanup(self.preemption.stop)

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

    def test_it_preempts_until_the_end(self):
        name = self.preemption.begin([os.getpid()], 500, _PATIENCE_S)
        self.await_that(lambda: len(self.places) > 3)
        self.assertTrue(self.preemption.alive)
        self.assertEqual([(0, os.SCHED_FIFO, 1)], self.classes)
        self.preemption.end(name)
        self.await_that(lambda: not self.preemption.alive)
        self.assertEqual({0}, {tid for tid, _ in self.places})
        for _, cpus in self.places:
            self.assertEqual(1, len(cpus))
        # Nothing is to be ended any more.
        self.preemption.end(name)

    def test_it_ends_by_itself(self):
        self.preemption.begin([os.getpid()], 500, 0.01)
        self.await_that(lambda: not self.preemption.alive)

    def test_it_ends_by_itself_whatever_was_asked_for(self):
        self.patch(preemption, 'LONGEST_S', 0.01)
        self.preemption.begin([os.getpid()], 500, 1e9)
        self.await_that(lambda: not self.preemption.alive)

    def test_several_at_once(self):
        first = self.preemption.begin([os.getpid()], 500, _PATIENCE_S)
        second = self.preemption.begin([os.getpid()], 900, _PATIENCE_S)
        self.assertNotEqual(first, second)
        self.preemption.end(first)
        seen = len(self.places)
        self.await_that(lambda: len(self.places) > seen + 3)
        self.assertEqual(1, len(self.classes))
        self.preemption.stop()
        self.assertFalse(self.preemption.alive)

    def test_again(self):
        for _ in range(3):
            self.preemption.end(
                self.preemption.begin([os.getpid()], 500, _PATIENCE_S)
            )
            self.await_that(lambda: not self.preemption.alive)

    def test_threads_that_are_gone(self):
        # No process has that number.
        self.preemption.begin([1 << 22], 500, _PATIENCE_S)
        self.await_that(lambda: self.classes)
        self.preemption.stop()
        self.assertEqual([], self.places)

    def test_the_kernel_refuses(self):
        self.error = OSError(errno.EPERM, 'no')
        self.assertRaises(
            OSError, self.preemption.begin, [os.getpid()], 500, _PATIENCE_S
        )
        self.assertFalse(self.preemption.alive)
        self.error = None
        self.preemption.begin([os.getpid()], 500, _PATIENCE_S)
        self.assertTrue(self.preemption.alive)

    def test_where_the_helper_may_not_be(self):
        def refuse(tid, cpus):
            self.places.append(cpus)
            raise OSError(errno.EINVAL, 'no')

        self.patch(os, 'sched_setaffinity', refuse)
        self.preemption.begin([os.getpid()], 500, _PATIENCE_S)
        self.await_that(lambda: len(self.places) > 3)
        self.assertTrue(self.preemption.alive)


class EntrypointsTest(base.BaseTestCase):
    def test_begin_and_end(self):
        self.patch(os, 'sched_setscheduler', lambda *_: None)
        self.patch(os, 'sched_setaffinity', lambda *_: None)
        with in_process.entrypoints(preemption.turns_pctxt):
            preemption.ready()
            self.addCleanup(preemption._preemption.stop)
            name = preemption.begin([os.getpid()], 500, _PATIENCE_S)
            self.assertTrue(preemption._preemption.alive)
            preemption.end(name)
            preemption._preemption.stop()
            self.assertFalse(preemption._preemption.alive)

    def test_threads_of_others_are_left_out(self):
        followed = []
        self.patch(ownership, 'refusals', lambda tids: {8: 'the shell'})
        self.patch(
            preemption._preemption,
            'begin',
            lambda tids, *_: followed.extend(tids) or 1,
        )
        with in_process.entrypoints(preemption.turns_pctxt):
            preemption.begin([7, 8, 9], 500, _PATIENCE_S)
        self.assertEqual([7, 9], followed)
