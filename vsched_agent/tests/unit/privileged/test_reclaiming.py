# SPDX-License-Identifier: Apache-2.0

import errno
import itertools
import threading
import time

from oslotest import base

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged.budget_expiry import polling
from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import reclaiming
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_kernel
from vsched_agent.tests import in_process

MS = 1_000_000
RECLAIM = syscalls.FLAG_RECLAIM


class TestGovernor(base.BaseTestCase):
    """The real thread, on a kernel that is not."""

    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        # It ends in a test of its own only, however long a machine stands
        # still.
        self.patch(reclaiming, 'LEASE_S', 600.0)
        self.runnable = 0
        self.patch(
            reclaiming._Runnable,
            'read',
            lambda this, now_s: (2, self.runnable),
        )
        manager = in_process.entrypoints(budgets.budgets_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.addCleanup(budgets.stop)

    def held(self):
        request = entering.Request(
            self.kernel.start(state='R'), 4 * MS, 20 * MS
        )
        self.kernel.threads[request.tid].attr = request.attr
        return request

    def flags(self, request):
        return self.kernel.threads[request.tid].attr.flags & RECLAIM

    def await_flags(self, request, flags, meanwhile=lambda: None):
        give_up = time.monotonic() + 60
        while self.flags(request) != flags:
            self.assertLess(time.monotonic(), give_up)
            meanwhile()
            time.sleep(0.001)

    def await_watched(self, count):
        give_up = time.monotonic() + 60
        while budgets.renew()['watched'] != count:
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.001)

    def test_set_and_cleared(self):
        one, other = self.held(), self.held()
        self.assertEqual(0, budgets.reclaim([one, other]))
        self.await_flags(one, RECLAIM)
        self.await_flags(other, RECLAIM)
        self.runnable = 4
        self.await_flags(one, 0)
        self.await_flags(other, 0)
        self.assertEqual(
            {
                'on': False,
                'watched': 2,
                'sampling': True,
                'switches': 2,
                'refused': {},
            },
            {**budgets.renew(), 'switches': 2},
        )

    def test_the_guest_itself_is_no_other(self):
        one, other = self.held(), self.held()
        leaders = []
        for request in (one, other):
            leaders.append(self.kernel.start(state='R'))
            self.kernel.threads[request.tid].leader = leaders[-1]
        # Their main threads.
        self.runnable = 2
        budgets.reclaim([one, other])
        self.await_flags(one, RECLAIM)
        # As many, but others.
        for leader in leaders:
            self.kernel.threads[leader].state = 'S'
        self.runnable = 4
        self.await_flags(one, 0)

    def test_an_ended_thread_is_forgotten_on_an_idle_host(self):
        self.patch(reclaiming, '_THREADS_AGE_S', 0.05)
        one, other = self.held(), self.held()
        budgets.reclaim([one, other])
        self.await_flags(one, RECLAIM)
        self.kernel.threads[other.tid].state = 'Z'
        self.await_watched(1)

    def test_no_call_while_nothing_changes(self):
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        # Answered once all threads have been changed.
        budgets.renew()
        self.kernel.calls.clear()
        time.sleep(0.2)
        self.assertEqual([], self.kernel.calls)

    def test_forgotten_ones_lose_it(self):
        one, other = self.held(), self.held()
        budgets.reclaim([one, other])
        self.await_flags(one, RECLAIM)
        self.assertEqual((tuple(one),), budgets.stop_reclaiming([one.tid, 1]))
        self.assertEqual(0, self.flags(one))
        self.assertEqual(RECLAIM, self.flags(other))

    def test_all_lose_it_in_the_end(self):
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        budgets.stop()
        self.assertEqual(0, self.flags(one))
        self.assertNotIn(
            reclaiming.COMM, [thread.name for thread in threading.enumerate()]
        )

    def test_the_lease_ends(self):
        self.patch(reclaiming, 'LEASE_S', 3.0)
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM, budgets.renew)
        self.await_flags(one, 0)
        self.await_flags(one, RECLAIM, budgets.renew)

    def test_what_others_changed_is_left_alone(self):
        one = self.held()
        foreign = one._replace(runtime_ns=5 * MS).attr
        self.kernel.threads[one.tid].attr = foreign
        budgets.reclaim([one])
        self.await_watched(0)
        self.assertEqual(foreign, self.kernel.get_attr(one.tid))

    def test_pinned_ones_are_told_of(self):
        one = self.held()
        self.kernel.threads[one.tid].cpus = frozenset((1,))
        budgets.reclaim([one])
        give_up = time.monotonic() + 60
        while budgets.renew()['refused'] != {one.tid: errno.EPERM}:
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.001)

    def test_no_room_for_the_sampler(self):
        def no_room(tid):
            raise OSError(errno.EBUSY, 'full')

        self.patch(reclaiming, '_enter', no_room)
        one = self.held()
        self.assertEqual(errno.EBUSY, budgets.reclaim([one]))
        self.assertEqual(0, self.flags(one))
        self.assertFalse(budgets.renew()['sampling'])

    def test_a_thread_ends(self):
        one, other = self.held(), self.held()
        budgets.reclaim([one, other])
        self.kernel.end(one.tid)
        self.await_flags(other, RECLAIM)
        self.await_watched(1)

    def test_looks_go_on(self):
        one = self.held()
        self.assertEqual(0, budgets.watch([one], 500))
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        for flags in (RECLAIM, 0):
            with self.subTest(flags=flags):
                seen = set()
                give_up = time.monotonic() + 60
                while len(seen) < 2:
                    self.assertLess(time.monotonic(), give_up)
                    seen.add(self.kernel.get_attr(one.tid))
                self.assertEqual(
                    {flags}, {attr.flags & RECLAIM for attr in seen}
                )
                self.runnable = 4
                self.await_flags(one, 0)

    def test_looks_begin_later(self):
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        budgets.watch([one], 500)
        seen = set()
        give_up = time.monotonic() + 60
        while len(seen) < 2:
            self.assertLess(time.monotonic(), give_up)
            seen.add(self.kernel.get_attr(one.tid))


class TestSetFlags(base.BaseTestCase):
    def test_either_parameters_are_kept(self):
        kernel = self.useFixture(fake_kernel.FakeKernel())
        request = entering.Request(kernel.start(), 4 * MS, 20 * MS)
        watched = polling.Watched()
        for attr, flags in itertools.product(
            (request.attr, polling.alternate(request.attr)), (RECLAIM, 0)
        ):
            kernel.threads[request.tid].attr = attr
            self.assertTrue(watched.set_flags(request, flags))
            self.assertEqual(
                attr._replace(flags=attr.flags | flags),
                kernel.get_attr(request.tid),
            )
