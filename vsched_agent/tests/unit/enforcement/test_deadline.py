# SPDX-License-Identifier: Apache-2.0

import errno

from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import deadline
from vsched_agent.privileged import leaving
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.tests import assignments
from vsched_agent.tests import backend_suite
from vsched_agent.tests import fake_kernel
from vsched_lib.contract import errors
from vsched_lib.model import reservation


class DeadlineCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        self.backend = deadline.DeadlineBackend()

    def targets(self, count):
        return [
            enforcement.Target(index, self.kernel.start())
            for index in range(count)
        ]

    def end(self, target):
        self.kernel.end(target.tid)

    def refused(self, targets, runtime_us, period_us=20_000):
        return self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(
                targets, reservation.Reservation(runtime_us, period_us)
            ),
        )


class TestDeadline(DeadlineCase, backend_suite.BackendSuite):
    def test_what_is_in_force_is_not_set_again(self):
        targets = self.targets(2)
        promise = reservation.Reservation(4_000, 20_000)
        self.backend.apply_each(assignments.alike(targets[:1], promise))
        self.kernel.calls.clear()
        self.backend.apply_each(assignments.alike(targets, promise))
        self.assertEqual(
            [targets[1].tid], [call[0] for call in self.kernel.calls]
        )

    def test_both_modes_read_back(self):
        (target,) = self.targets(1)
        for mode in reservation.Mode:
            self.backend.apply_each(
                [(target, reservation.Reservation(4_000, 20_000, mode))]
            )
            self.assertEqual(
                mode, self.backend.read([target])[target.tid].mode
            )

    def test_a_thread_whose_group_is_gone(self):
        def without(tid, attr):
            raise FileNotFoundError('machine.slice/vcpu0')

        self.patch(self.backend._idle, 'without', without)
        refusal = self.refused(self.targets(1), 4_000)
        self.assertEqual(errors.Code.THREADS_GONE, refusal.code)

    def test_a_zombie(self):
        tid = self.kernel.start(state='Z')
        refusal = self.refused([enforcement.Target(0, tid)], 4_000)
        self.assertEqual(errors.Code.THREADS_GONE, refusal.code)
        self.assertEqual(
            'thread %d has ended and is a zombie' % tid, refusal.detail
        )

    def test_the_kernels_no_has_figures(self):
        targets = self.targets(3)
        self.backend.apply_each(
            assignments.alike(
                targets[:1], reservation.Reservation(2_000, 20_000)
            )
        )
        refusal = self.refused(targets, 19_000)
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual(
            {'needed_mcpu': 2850, 'held_mcpu': 100, 'free_mcpu': 1699},
            refusal.figures,
        )
        self.assertEqual(0, self.kernel.leaked)

    def test_a_confined_thread_says_where_it_is(self):
        tid = self.kernel.start(cpus=frozenset((1,)))
        refusal = self.refused([enforcement.Target(0, tid)], 4_000)
        self.assertEqual(errors.Code.PINNING_UNSUPPORTED, refusal.code)
        self.assertEqual([1], refusal.figures['cpus'])

    def test_no_permission_although_it_is_everywhere(self):
        def set_attr(tid, attr):
            raise PermissionError(errno.EPERM, 'no')

        self.patch(syscalls, 'set_attr', set_attr)
        refusal = self.refused(self.targets(1), 4_000)
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)

    def test_out_of_the_kernels_range(self):
        refusal = self.refused(self.targets(1), 50, 50)
        self.assertEqual(errors.Code.RESERVATION_INVALID, refusal.code)

    def test_a_deadline_thread_of_another_goes_back_to_its_own(self):
        (target,) = self.targets(1)
        own = syscalls.Attr(
            syscalls.SCHED_DEADLINE, 1, 0, 0, 3_000_000, 30_000_000, 30_000_000
        )
        self.kernel.threads[target.tid].attr = own
        prior = self.backend.prior([target])
        self.backend.apply_each(
            [(target, reservation.Reservation(4_000, 20_000))]
        )
        self.backend.restore([target], prior)
        self.assertEqual(own, self.kernel.get_attr(target.tid))

    def test_two_hundred_lives_leak_nothing(self):
        targets = self.targets(2)
        prior = self.backend.prior(targets)
        for turn in range(200):
            self.backend.apply_each(
                assignments.alike(
                    targets, reservation.Reservation(4_000 + turn, 20_000)
                )
            )
            self.backend.restore(targets, prior)
        self.assertEqual((0, 0), (self.kernel.leaked, self.kernel.used))


class TestSupport(DeadlineCase):
    def test_a_full_class_is_usable(self):
        self.kernel.bound = 0
        self.assertTrue(self.backend.supports().usable)

    def test_why_not(self):
        for number, words in (
            (errno.EPERM, 'CAP_SYS_NICE'),
            (errno.EINVAL, 'no SCHED_DEADLINE'),
            (errno.ENOMEM, 'refuses the class'),
        ):
            self.patch(sched, 'try_deadline', lambda number=number: number)
            support = self.backend.supports()
            self.assertFalse(support.usable)
            self.assertIn(words, support.reasons[0])

    def test_a_helper_that_does_not_start(self):
        def fail():
            raise OSError('sudo: a password is required')

        self.patch(sched, 'try_deadline', fail)
        support = self.backend.supports()
        self.assertFalse(support.usable)
        self.assertIn('a password is required', support.reasons[0])
        self.assertIn('[vsched_sched_privileged]', support.reasons[0])

    def test_a_kernel_before_the_class(self):
        self.patch(syscalls, 'known', lambda: False)
        self.assertIn('3.14', self.backend.supports().reasons[0])
