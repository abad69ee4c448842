# SPDX-License-Identifier: Apache-2.0

import errno
import threading
import time

from oslotest import base

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged.budget_expiry import checking
from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.tests import descriptors
from vsched_agent.tests import fake_kernel
from vsched_agent.tests import in_process

US = 1_000
MS = 1_000_000
#: Only a hang takes longer.
PATIENCE_S = 60


class TestPace(base.BaseTestCase):
    BURST_MS = checking.BURST_NS // MS

    def test_a_burst_is_free(self):
        pace = checking.Pace(5 * MS)
        self.assertEqual(0.0, pace.rest_s((5 + self.BURST_MS) * MS, 100.0))
        self.assertAlmostEqual(
            0.01, pace.rest_s((6 + self.BURST_MS) * MS, 100.0)
        )

    def test_a_tenth_in_the_long_run(self):
        pace = checking.Pace(0)
        ran_ns, now_s = 0, 1_000.0
        while now_s < 1_010.0:
            ran_ns += 200 * US
            now_s += 200e-6
            now_s += pace.rest_s(ran_ns, now_s)
        self.assertAlmostEqual(1.0, ran_ns * 1e-9, delta=0.01)

    def test_a_larger_part(self):
        pace = checking.Pace(0, 500)
        ran_ns, now_s = 0, 1_000.0
        while now_s < 1_010.0:
            ran_ns += 200 * US
            now_s += 200e-6
            now_s += pace.rest_s(ran_ns, now_s)
        self.assertAlmostEqual(5.0, ran_ns * 1e-9, delta=0.05)

    def test_what_was_not_used_is_not_saved(self):
        pace = checking.Pace(0)
        pace.rest_s(0, 100.0)
        self.assertAlmostEqual(
            0.03, pace.rest_s((3 + self.BURST_MS) * MS, 900.0)
        )


class TestChecker(base.BaseTestCase):
    """The real thread, on a fake kernel."""

    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        manager = in_process.entrypoints(budgets.budgets_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.addCleanup(budgets.stop)

    def held(self):
        request = entering.Request(self.kernel.start(), 4 * MS, 20 * MS)
        self.kernel.threads[request.tid].attr = request.attr
        return request

    def await_checks(self, count=4):
        done = len(self.kernel.calls) + count
        give_up = time.monotonic() + PATIENCE_S
        while len(self.kernel.calls) < done:
            self.assertLess(time.monotonic(), give_up)
            threading.Event().wait(0.001)

    def checkers(self):
        return [one for one in threading.enumerate() if one.name == 'budgets']

    def test_it_checks_with_a_tenth_reserved(self):
        one = self.held()
        held = self.kernel.used
        self.assertEqual(0, budgets.watch([tuple(one)], 500))
        self.assertEqual(fake_kernel.CPU // 10, self.kernel.used - held)
        self.await_checks()
        self.assertEqual((tuple(one),), budgets.forget([one.tid]))
        self.kernel.calls.clear()
        threading.Event().wait(0.02)
        self.assertEqual(
            [], [call for call in self.kernel.calls if call[0] == one.tid]
        )
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))

    def test_it_ends_without_threads(self):
        one = self.held()
        budgets.watch([tuple(one)], 500)
        (checker,) = self.checkers()
        budgets.forget([one.tid])
        checker.join(PATIENCE_S)
        self.assertEqual([], self.checkers())
        self.kernel.end(one.tid)
        self.assertEqual(self.kernel.leaked, self.kernel.used)
        # ... and comes again.
        again = self.held()
        budgets.watch([tuple(again)], 500)
        self.await_checks()

    def test_another_interval(self):
        one = self.held()
        budgets.watch([tuple(one)], 500)
        budgets.watch([], 1_000)
        budgets.watch([tuple(one)], 1_000)
        self.assertEqual(1, len(self.checkers()))
        self.assertIn(
            (200 * US, 2_000 * US), [call[2:] for call in self.kernel.calls]
        )
        self.await_checks()

    def test_a_full_kernel(self):
        one = self.held()
        self.kernel.bound = self.kernel.used
        self.assertEqual(errno.EBUSY, budgets.watch([tuple(one)], 500))
        self.assertEqual([], self.checkers())
        self.assertEqual((), budgets.forget([one.tid]))
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))

    def sockets(self):
        return set(descriptors.links('socket:'))

    def test_abandoned_inboxes_are_closed(self):
        before = self.sockets()
        addresses = [budgets.borrow() for _ in range(70)]
        self.assertEqual(70, len(set(addresses)))
        self.assertEqual(64, len(self.sockets() - before))
        budgets.watch([], 500, addresses[-1])
        # Once more, and one that was closed.
        budgets.watch([], 500, addresses[-1])
        budgets.watch([], 500, addresses[0])
        self.assertEqual(63, len(self.sockets() - before))
        budgets.stop()
        self.assertEqual(set(), self.sockets() - before)

    def test_nothing_to_do(self):
        self.assertEqual(0, budgets.watch([], 500))
        self.assertEqual([], self.checkers())
        budgets.stop()
