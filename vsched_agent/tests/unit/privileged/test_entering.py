# SPDX-License-Identifier: Apache-2.0

import errno
import os

from oslotest import base

from vsched_agent.privileged import entering
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads
from vsched_agent.tests import fake_kernel

MS = 1_000_000


class TestEntering(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())

    def enter(self, *requests):
        return sched.set_deadline(
            [
                (tid, runtime_ms * MS, 20 * MS, 0)
                for tid, runtime_ms in requests
            ]
        )

    def runtime_ms(self, tid):
        return self.kernel.get_attr(tid).runtime_ns / MS

    def test_children_are_never_in_the_class(self):
        tid = self.kernel.start()
        self.assertEqual({}, self.enter((tid, 4)))
        attr = self.kernel.get_attr(tid)
        self.assertEqual(syscalls.SCHED_DEADLINE, attr.policy)
        self.assertEqual(syscalls.FLAG_RESET_ON_FORK, attr.flags)
        self.assertEqual(
            (20 * MS, 20 * MS), (attr.deadline_ns, attr.period_ns)
        )

    def test_the_last_one_that_does_not_fit_undoes_all(self):
        inside, *outside = [self.kernel.start() for _ in range(3)]
        self.enter((inside, 2))
        before = [self.kernel.get_attr(tid) for tid in (inside, *outside)]
        failure = self.enter(*((tid, 19) for tid in (inside, *outside)))
        self.assertEqual(
            (errno.EBUSY, 'set'), (failure['errno'], failure['step'])
        )
        self.assertEqual((), failure['unrestored'])
        self.assertEqual(
            before, [self.kernel.get_attr(tid) for tid in (inside, *outside)]
        )
        self.assertEqual(0, self.kernel.leaked)

    def test_bandwidth_that_is_about_to_come_back_is_waited_for(self):
        tid = self.kernel.start()
        ghost = self.kernel.start()
        self.enter((ghost, 20))
        waited = []

        def wait(seconds):
            waited.append(seconds)
            if len(waited) == 2:
                self.kernel.end(ghost)

        self.patch(entering.time, 'sleep', wait)
        self.assertEqual({}, self.enter((tid, 20)))
        self.assertEqual(2, len(waited))

    def test_a_full_kernel_is_not_waited_for_for_long(self):
        tid, other = self.kernel.start(), self.kernel.start()
        self.enter((other, 20))
        self.assertEqual(errno.EBUSY, self.enter((tid, 20))['errno'])
        self.assertLess(sum(self.kernel.slept), 0.2)

    def test_one_that_stands_still_is_put_in_again(self):
        tid = self.kernel.start(state='R', left_ns=-MS)
        real, entered = self.kernel.set_attr, []

        def set_attr(tid, attr):
            real(tid, attr)
            if attr.policy == syscalls.SCHED_DEADLINE:
                entered.append(attr)
            if len(entered) == 2:
                self.kernel.threads[tid].left_ns = MS

        self.patch(syscalls, 'set_attr', set_attr)
        self.assertEqual({}, self.enter((tid, 4)))
        self.assertEqual(2, len(entered))
        self.assertEqual(4, self.runtime_ms(tid))

    def test_one_that_is_replenished_is_left_alone(self):
        tid = self.kernel.start(state='R', left_ns=-MS)

        def sleep(seconds):
            self.kernel.threads[tid].deadline_ns += 20 * MS

        self.patch(entering.time, 'sleep', sleep)
        self.assertEqual({}, self.enter((tid, 4)))
        self.assertEqual(1, len(self.kernel.calls))

    def test_what_never_runs_is_tried_for_so_long(self):
        tid = self.kernel.start(state='R', left_ns=-MS)
        self.assertEqual({}, self.enter((tid, 4)))
        self.assertEqual(4, self.runtime_ms(tid))
        self.assertEqual(7, len(self.kernel.calls))

    def test_what_gives_goes_first(self):
        small, large = self.kernel.start(), self.kernel.start()
        self.assertEqual({}, self.enter((small, 16), (large, 20)))
        # 1.8 CPUs are taken: only in this order there is room.
        self.assertEqual({}, self.enter((small, 20), (large, 16)))
        self.assertEqual(
            (20, 16), (self.runtime_ms(small), self.runtime_ms(large))
        )

    def test_a_thread_that_is_gone_touches_nobody(self):
        tid, gone = self.kernel.start(), self.kernel.start()
        self.kernel.end(gone)
        failure = self.enter((tid, 4), (gone, 4))
        self.assertEqual(
            (gone, errno.ESRCH, 'read'),
            (failure['tid'], failure['errno'], failure['step']),
        )
        self.assertEqual([], self.kernel.calls)

    def test_a_zombie_is_refused(self):
        for state in 'ZX':
            tid, zombie = self.kernel.start(), self.kernel.start(state=state)
            failure = self.enter((tid, 4), (zombie, 4))
            self.assertEqual(
                (zombie, errno.ESRCH, 'ended'),
                (failure['tid'], failure['errno'], failure['step']),
            )
        self.assertEqual((0, []), (self.kernel.used, self.kernel.calls))

    def test_one_that_ends_meanwhile_does_not_keep_others_from_going_back(
        self,
    ):
        first, second = self.kernel.start(), self.kernel.start()
        third = self.kernel.start(cpus=frozenset((0,)))
        real = self.kernel.set_attr

        def set_attr(tid, attr):
            if tid == third and first in self.kernel.threads:
                self.kernel.end(first)
            real(tid, attr)

        self.patch(syscalls, 'set_attr', set_attr)
        failure = self.enter((first, 2), (second, 3), (third, 4))
        self.assertEqual(errno.EPERM, failure['errno'])
        self.assertEqual((), failure['unrestored'])
        self.assertEqual(0, self.kernel.used)


class TestZombie(base.BaseTestCase):
    """As /proc shows one."""

    def test_a_zombie_in_proc(self):
        pid = os.fork()
        if not pid:
            os._exit(0)
        self.addCleanup(os.waitpid, pid, 0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self.assertRaises(ProcessLookupError, threads.state, pid)
