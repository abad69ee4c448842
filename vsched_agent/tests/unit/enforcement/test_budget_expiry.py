# SPDX-License-Identifier: Apache-2.0

import errno
import logging

import fixtures
from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import budget_expiry
from vsched_agent.enforcement import deadline
from vsched_agent.privileged.budget_expiry import budgets as privileged
from vsched_agent.privileged.budget_expiry import lending
from vsched_agent.privileged import leaving
from vsched_agent.privileged import sched
from vsched_agent.tests import assignments
from vsched_agent.tests import fake_kernel
from vsched_lib.contract import errors
from vsched_lib.model import reservation

US = 1_000
PROMISE = reservation.Reservation(4_000, 20_000)


class FakeHelper:
    """Replaces the privileged entrypoints.

    :param kernel: the kernel whose threads it checks, once per call.
    """

    def __init__(self, kernel):
        self.kernel = kernel
        self.watched = {}
        self.check_us = None
        self.calls = []
        self.lent = []
        self.answer = 0

    def borrow(self):
        return b'inbox'

    def lend(self, tids, address):
        self.lent.append((list(tids), address))
        return dict.fromkeys(tids[1:], errno.EMFILE)

    def watch(self, requests, check_us, address):
        self.calls.append('watch')
        assert self.lent[-1] == ([one[0] for one in requests], address)
        if not self.answer:
            self.watched |= {one[0]: tuple(one) for one in requests}
            self.check_us = check_us
        return self.answer

    def forget(self, tids):
        self.calls.append('forget')
        found = [self.watched.pop(tid) for tid in tids if tid in self.watched]
        for one in found:
            self.move(one[0], 0)
        return found

    def stop(self):
        self.calls.append('stop')
        self.forget(list(self.watched))

    def move(self, tid, more_ns):
        thread = self.kernel.threads[tid]
        thread.attr = thread.attr._replace(
            runtime_ns=round(thread.attr.runtime_ns, -3) + more_ns
        )


class ChecksCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        self.helper = FakeHelper(self.kernel)
        for name in ('borrow', 'watch', 'forget', 'stop'):
            self.patch(privileged, name, getattr(self.helper, name))
        self.patch(lending, 'lend', self.helper.lend)
        self.checks = budget_expiry.BudgetChecks(500)
        self.backend = deadline.DeadlineBackend(checks=self.checks)

    def targets(self, count):
        return [
            enforcement.Target(index, self.kernel.start())
            for index in range(count)
        ]


class TestBudgetChecks(ChecksCase):
    def test_what_they_take_of_the_host(self):
        self.assertEqual(100, self.checks.reserve_mcpu)
        self.assertEqual(0, budget_expiry.BudgetChecks().reserve_mcpu)

    def test_off_starts_no_helper(self):
        checks = budget_expiry.BudgetChecks(0)
        checks.watch([(1, 2, 3, 0)])
        with checks.paused([1]):
            pass
        checks.close()
        self.assertEqual([], self.helper.calls)

    def test_no_threads_start_no_helper(self):
        self.checks.watch([])
        self.checks.forget([1])
        self.checks.close()
        self.assertEqual([], self.helper.calls)

    def test_a_helper_that_does_not_start_is_a_warning(self):
        def fail(*arguments):
            raise OSError('sudo: a password is required')

        for name in ('borrow', 'watch', 'forget', 'stop'):
            self.patch(privileged, name, fail)
        (target,) = self.targets(1)
        prior = self.backend.prior([target])
        self.backend.apply_each([(target, PROMISE)])
        self.backend.restore([target], prior)
        self.backend.close()
        self.assertEqual(prior, self.backend.prior([target]))

    def test_missing_events_are_a_warning(self):
        def fail(tids, address):
            self.helper.lent.append((list(tids), address))
            raise OSError('sudo: a password is required')

        self.patch(lending, 'lend', fail)
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        (target,) = self.targets(1)
        self.backend.apply_each([(target, PROMISE)])
        self.assertEqual({target.tid}, set(self.helper.watched))
        self.assertIn('once an interval: sudo', log.output)

    def test_no_room_for_the_helper_is_a_warning(self):
        self.helper.answer = errno.EBUSY
        (target,) = self.targets(1)
        self.backend.apply_each([(target, PROMISE)])
        self.assertEqual(
            4_000, self.backend.read([target])[target.tid].runtime_us
        )


class TestDeadlineBackend(ChecksCase):
    def expected(self, targets, runtime_us=4_000, period_us=20_000):
        return {
            target.tid: (target.tid, runtime_us * US, period_us * US, 1)
            for target in targets
        }

    def test_applied_threads_are_checked_until_restored(self):
        targets = self.targets(2)
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, PROMISE))
        self.assertEqual(self.expected(targets), self.helper.watched)
        self.assertEqual(500, self.helper.check_us)
        self.backend.restore(targets, prior)
        self.assertEqual({}, self.helper.watched)
        self.assertEqual(prior, self.backend.prior(targets))

    def test_no_checks_during_a_change(self):
        targets = self.targets(2)
        self.backend.apply_each(assignments.alike(targets, PROMISE))
        watched = []
        real = sched.set_deadline

        def set_deadline(requests):
            watched.append(dict(self.helper.watched))
            return real(requests)

        self.patch(sched, 'set_deadline', set_deadline)
        self.backend.apply_each(
            assignments.alike(
                targets[:1], reservation.Reservation(6_000, 20_000)
            )
        )
        self.assertEqual([self.expected(targets[1:])], watched)
        self.assertEqual(
            {
                **self.expected(targets[:1], 6_000),
                **self.expected(targets[1:]),
            },
            self.helper.watched,
        )

    def test_a_change_that_is_refused_changes_nothing(self):
        targets = self.targets(3)
        self.backend.apply_each(assignments.alike(targets, PROMISE))
        self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(
                targets, reservation.Reservation(19_000, 20_000)
            ),
        )
        self.assertEqual(self.expected(targets), self.helper.watched)

    def test_a_nanosecond_is_no_difference(self):
        (target,) = self.targets(1)
        self.backend.apply_each([(target, PROMISE)])
        for more_ns in (1, -1):
            self.helper.move(target.tid, more_ns)
            self.assertEqual(
                (4_000, 20_000, reservation.Mode.CAPPED),
                self.backend.read([target])[target.tid].figures(),
            )
            self.kernel.calls.clear()
            self.backend.apply_each([(target, PROMISE)])
            self.assertEqual([], self.kernel.calls)

    def test_more_than_that_is_one(self):
        (target,) = self.targets(1)
        self.backend.apply_each([(target, PROMISE)])
        self.helper.move(target.tid, 2)
        self.backend.apply_each([(target, PROMISE)])
        self.assertEqual(
            4_000 * US, self.kernel.get_attr(target.tid).runtime_ns
        )

    def test_checks_resume_after_a_restart(self):
        targets = self.targets(2)
        deadline.DeadlineBackend().apply_each(
            assignments.alike(targets, PROMISE)
        )
        self.assertEqual({}, self.helper.watched)
        self.kernel.calls.clear()
        self.backend.resume([(target, PROMISE) for target in targets])
        self.assertEqual(self.expected(targets), self.helper.watched)
        self.assertEqual([], self.kernel.calls)

    def test_the_end_leaves_all_in_force(self):
        targets = self.targets(2)
        self.backend.apply_each(assignments.alike(targets, PROMISE))
        self.helper.move(targets[0].tid, 1)
        self.backend.close()
        self.assertEqual({}, self.helper.watched)
        self.assertEqual(
            {4_000 * US},
            {
                self.kernel.get_attr(target.tid).runtime_ns
                for target in targets
            },
        )


class TestCheckLoad(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.load = budget_expiry.CheckLoad()
        self.now_s = self.rested_s = 0.0

    def run_for(self, seconds, part):
        """Run passes with a helper that rests for a part of them."""
        for _ in range(seconds):
            self.now_s += 1
            self.rested_s += part
            self.load.take(7, self.rested_s, self.now_s)
        return self.load.status

    def test_enough_is_left(self):
        self.assertEqual(
            budget_expiry.CheckStatus(7, False), self.run_for(60, 0.05)
        )

    def test_used_up(self):
        self.assertFalse(self.run_for(4, 0.5).saturated)
        self.assertTrue(self.run_for(6, 0.5).saturated)

    def test_a_moment_is_endured(self):
        self.run_for(10, 0.0)
        self.assertFalse(self.run_for(1, 0.3).saturated)
        self.assertFalse(self.run_for(20, 0.0).saturated)

    def test_over_after_a_minute(self):
        self.run_for(10, 0.5)
        self.assertTrue(self.run_for(59, 0.0).saturated)
        self.assertFalse(self.run_for(10, 0.0).saturated)

    def test_it_does_not_ease(self):
        self.run_for(10, 0.5)
        self.assertTrue(self.run_for(300, 0.04).saturated)

    def test_a_helper_that_is_gone(self):
        self.run_for(10, 0.0)
        self.load.lost()
        self.assertTrue(self.load.status.saturated)

    def test_a_new_helper_counts_anew(self):
        self.run_for(10, 0.02)
        self.rested_s = 0.0
        self.assertFalse(self.run_for(10, 0.02).saturated)
