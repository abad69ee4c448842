# SPDX-License-Identifier: Apache-2.0

import errno

from oslotest import base

from vsched_agent.privileged import leaving
from vsched_agent.privileged import parking
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_kernel

MS = 1_000_000
HELD = syscalls.Attr(
    syscalls.SCHED_DEADLINE, 1, 0, 0, 6 * MS, 20 * MS, 20 * MS
)


class TestLeaving(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.waited = []
        self.patch(leaving.time, 'sleep', self.waited.append)
        self.patch(leaving, '_over_ns', {})

    def leave(self, *tids, policy=syscalls.SCHED_OTHER, nice=0, priority=0):
        return sched.leave_deadline(
            [(tid, policy, 0, nice, priority) for tid in tids]
        )

    def test_a_sleeper_takes_nothing_along(self):
        tid = self.kernel.start(attr=HELD)
        self.assertEqual((), self.leave(tid))
        self.assertEqual(0, self.kernel.used)
        self.assertEqual(
            [parking.PARKED.period_ns, 0],
            [call[3] for call in self.kernel.calls],
        )

    def test_one_that_is_about_to_sleep_takes_nothing_along(self):
        tid = self.kernel.start(attr=HELD, state='R', left_ns=2 * MS)
        thread = self.kernel.threads[tid]
        real = self.kernel.set_attr

        def set_attr(tid, attr):
            # Between the look at its state and this call.
            thread.state = 'S'
            real(tid, attr)

        self.patch(syscalls, 'set_attr', set_attr)
        self.patch(
            leaving.time,
            'sleep',
            lambda seconds: setattr(thread, 'state', 'S'),
        )
        self.assertEqual((), self.leave(tid))
        self.assertEqual(0, self.kernel.used)

    def test_one_that_is_throttled_is_not_waited_for(self):
        tid = self.kernel.start(attr=HELD, state='R', left_ns=-1)
        self.assertEqual((), self.leave(tid))
        self.assertNotIn(leaving._POLL_S, self.waited)

    def test_one_that_never_sleeps_is_waited_for_so_long(self):
        tid = self.kernel.start(attr=HELD, state='R', left_ns=2 * MS)
        clock = iter(range(10_000))
        self.patch(leaving.time, 'monotonic', lambda: next(clock) / 1000)
        self.assertEqual((), self.leave(tid))
        self.assertEqual(0, self.kernel.used)
        self.assertLess(self.waited.count(leaving._POLL_S), 25)

    def test_the_parking_place_has_no_bandwidth(self):
        self.assertEqual(
            0,
            syscalls.kernel_bandwidth(
                parking.PARKED.runtime_ns, parking.PARKED.period_ns
            ),
        )

    def test_an_overdrawn_thread_is_never_parked(self):
        tid = self.kernel.start(attr=HELD, state='R', left_ns=-2 * MS)
        self.assertEqual((), self.leave(tid))
        self.assertNotIn(
            parking.PARKED.period_ns, [call[3] for call in self.kernel.calls]
        )
        # It owes 2 ms, at the rate of 6 in 20.
        self.assertGreaterEqual(sum(self.waited), 0.0066)

    def test_an_overdrawn_sleeper_is_parked_when_it_is_replenished(self):
        tid = self.kernel.start(attr=HELD, left_ns=-2 * MS)
        seen = []

        def sleep(seconds):
            seen.append(list(self.kernel.calls))
            if len(seen) == 3:
                self.kernel.threads[tid].left_ns = 4 * MS

        self.patch(leaving.time, 'sleep', sleep)
        self.assertEqual((), self.leave(tid))
        self.assertEqual([[], [], []], seen[:3])
        self.assertEqual(
            [parking.PARKED.period_ns, 0],
            [call[3] for call in self.kernel.calls],
        )

    def test_an_overdrawn_sleeper_that_wakes_is_not_parked(self):
        tid = self.kernel.start(attr=HELD, left_ns=-2 * MS)
        self.patch(
            leaving.time,
            'sleep',
            lambda seconds: setattr(self.kernel.threads[tid], 'state', 'R'),
        )
        self.assertEqual((), self.leave(tid))
        self.assertEqual([0], [call[3] for call in self.kernel.calls])

    def test_a_sleeper_that_stays_overdrawn_is_waited_for_so_long(self):
        tid = self.kernel.start(attr=HELD, left_ns=-2 * MS)
        clock = iter(range(10_000))
        self.patch(leaving.time, 'monotonic', lambda: next(clock) / 1000)
        self.assertEqual((), self.leave(tid))
        # 2 ms and a tick at the rate of 6 in 20, and two periods.
        self.assertGreaterEqual(len(self.waited), 46)
        self.assertLess(len(self.waited), 200)
        self.assertEqual(0, self.kernel.used)

    def test_a_deadline_of_longer_periods_is_waited_for(self):
        tid = self.kernel.start(
            attr=HELD._replace(
                runtime_ns=300 * MS, deadline_ns=1000 * MS, period_ns=1000 * MS
            ),
            state='R',
        )
        self.assertEqual({}, sched.set_deadline([(tid, 6 * MS, 20 * MS, 0)]))
        self.assertEqual((), self.leave(tid))
        self.assertGreaterEqual(sum(self.waited), 1.9)

    def test_what_is_remembered_is_bounded(self):
        for tid in range(3 * leaving._REMEMBERED):
            leaving.changed(tid, HELD._replace(period_ns=-MS))
        self.assertLessEqual(len(leaving._over_ns), leaving._REMEMBERED)

    def test_a_sleeper_that_wakes_on_the_way_is_waited_for(self):
        tid = self.kernel.start(attr=HELD)
        real = self.kernel.set_attr

        def set_attr(tid, attr):
            real(tid, attr)
            if attr == parking.PARKED:
                self.kernel.threads[tid].state = 'R'

        self.patch(syscalls, 'set_attr', set_attr)
        self.assertEqual((), self.leave(tid))
        self.assertGreaterEqual(
            sum(self.waited), parking.PARKED.period_ns * 1e-9
        )

    def test_what_was_found_is_given_back(self):
        for policy, nice, priority in (
            (syscalls.SCHED_OTHER, 5, 0),
            (syscalls.SCHED_BATCH, -3, 0),
            (syscalls.SCHED_IDLE, 0, 0),
            (syscalls.SCHED_FIFO, 0, 7),
            (syscalls.SCHED_RR, 0, 1),
        ):
            tid = self.kernel.start(attr=HELD)
            self.assertEqual(
                (),
                self.leave(tid, policy=policy, nice=nice, priority=priority),
            )
            attr = self.kernel.get_attr(tid)
            self.assertEqual(
                (policy, nice, priority),
                (attr.policy, attr.nice, attr.priority),
            )

    def test_the_gone_and_the_dead_count_as_out(self):
        gone = self.kernel.start(attr=HELD)
        self.kernel.end(gone)
        tid = self.kernel.start(attr=HELD)
        self.assertEqual((), self.leave(gone, tid))
        self.assertEqual(
            syscalls.SCHED_OTHER, self.kernel.get_attr(tid).policy
        )

    def test_one_that_can_not_leave_is_told_and_the_others_leave(self):
        stuck = self.kernel.start(attr=HELD, cpus=frozenset((0,)))
        tid = self.kernel.start(attr=HELD)
        self.assertEqual(((stuck, errno.EPERM),), self.leave(stuck, tid))
        self.assertEqual(
            syscalls.SCHED_OTHER, self.kernel.get_attr(tid).policy
        )

    def test_books_below_zero_keep_nobody_inside(self):
        tid = self.kernel.start(attr=HELD)
        real = self.kernel.set_attr

        def set_attr(tid, attr):
            if attr == parking.PARKED:
                raise OSError(errno.EBUSY, 'books')
            real(tid, attr)

        self.patch(syscalls, 'set_attr', set_attr)
        self.assertEqual((), self.leave(tid))
        self.assertEqual(
            syscalls.SCHED_OTHER, self.kernel.get_attr(tid).policy
        )
