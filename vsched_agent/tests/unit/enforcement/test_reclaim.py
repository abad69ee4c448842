# SPDX-License-Identifier: Apache-2.0

import errno

import fixtures
from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import deadline
from vsched_agent.enforcement import reclaim
from vsched_agent.privileged.budget_expiry import budgets as privileged
from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls
from vsched_agent.tests import assignments
from vsched_agent.tests import fake_kernel
from vsched_lib.contract import errors
from vsched_lib.model import reservation

RECLAIM = syscalls.FLAG_RECLAIM
CAPPED = reservation.Reservation(4_000, 20_000)
SHARING = reservation.Reservation(
    4_000, 20_000, reservation.Mode.WORK_CONSERVING
)


class FakeHelper:
    """In the place of the privileged entrypoints.

    :param kernel: whose threads it sets the flag on, at once.
    """

    def __init__(self, kernel):
        self.kernel = kernel
        self.watched = {}
        self.answer = 0
        self.failure = None
        self.renewed = 0
        self.sampling = True
        self.refused = {}

    def _fail(self):
        if self.failure is not None:
            raise self.failure

    def _set(self, tid, flags):
        thread = self.kernel.threads[tid]
        thread.attr = thread.attr._replace(
            flags=thread.attr.flags & ~RECLAIM | flags
        )

    def reclaim(self, requests):
        self._fail()
        if not self.answer:
            for request in requests:
                self.watched[request[0]] = tuple(request)
                self._set(request[0], RECLAIM)
        return self.answer

    def stop_reclaiming(self, tids):
        self._fail()
        found = [self.watched.pop(tid) for tid in tids if tid in self.watched]
        for one in found:
            self._set(one[0], 0)
        return found

    def renew(self):
        self._fail()
        self.renewed += 1
        return {
            'on': True,
            'watched': len(self.watched),
            'switches': 0,
            'sampling': self.sampling,
            'refused': self.refused,
        }


class TestIdleTime(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(
            fixtures.FakeLogger('vsched_agent.enforcement')
        )
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        self.helper = FakeHelper(self.kernel)
        for name in ('reclaim', 'stop_reclaiming', 'renew'):
            self.patch(privileged, name, getattr(self.helper, name))
        self.idle = reclaim.IdleTime(True)
        self.backend = deadline.DeadlineBackend(idle=self.idle)
        self.target = enforcement.Target(0, self.kernel.start())

    def flags(self):
        return self.kernel.get_attr(self.target.tid).flags & RECLAIM

    def mode(self):
        return self.backend.read([self.target])[self.target.tid].mode

    def test_what_it_takes_of_the_host(self):
        self.assertEqual(20, self.idle.reserve_mcpu)
        self.assertEqual(0, reclaim.IdleTime().reserve_mcpu)

    def test_only_threads_that_may(self):
        self.backend.apply_each([(self.target, CAPPED)])
        self.backend.refresh()
        self.assertEqual({}, self.helper.watched)
        self.assertEqual(0, self.helper.renewed)
        self.backend.apply_each([(self.target, SHARING)])
        self.assertEqual(
            {self.target.tid: (self.target.tid, 4_000_000, 20_000_000, 1)},
            self.helper.watched,
        )
        self.backend.refresh()
        self.assertEqual(1, self.helper.renewed)

    def test_the_flag_is_no_drift(self):
        self.backend.apply_each([(self.target, SHARING)])
        for flags in (RECLAIM, 0):
            self.helper._set(self.target.tid, flags)
            self.assertIs(reservation.Mode.WORK_CONSERVING, self.mode())
            self.kernel.calls.clear()
            self.backend.apply_each([(self.target, SHARING)])
            self.assertEqual([], self.kernel.calls)

    def test_capped_again(self):
        self.backend.apply_each([(self.target, SHARING)])
        self.backend.apply_each([(self.target, CAPPED)])
        self.assertEqual(0, self.flags())
        self.assertEqual({}, self.helper.watched)
        self.assertIs(reservation.Mode.CAPPED, self.mode())

    def test_a_foreign_flag_is_drift(self):
        self.backend.apply_each([(self.target, CAPPED)])
        self.helper._set(self.target.tid, RECLAIM)
        self.assertIs(reservation.Mode.WORK_CONSERVING, self.mode())
        self.backend.apply_each([(self.target, CAPPED)])
        self.assertEqual(0, self.flags())

    def test_what_an_earlier_agent_left_is_cleared(self):
        self.backend.apply_each([(self.target, CAPPED)])
        self.helper._set(self.target.tid, RECLAIM)
        self.helper.answer = errno.EBUSY
        self.backend.apply_each([(self.target, SHARING)])
        self.assertEqual(0, self.flags())

    def test_changed_without_the_flag(self):
        self.backend.apply_each([(self.target, SHARING)])
        self.backend.apply_each(
            [
                (
                    self.target,
                    reservation.Reservation(
                        5_000, 20_000, reservation.Mode.WORK_CONSERVING
                    ),
                )
            ]
        )
        self.assertEqual(5_000_000, self.helper.watched[self.target.tid][1])
        self.assertEqual(RECLAIM, self.flags())

    def test_a_refused_change_leaves_it(self):
        self.backend.apply_each([(self.target, SHARING)])
        other = enforcement.Target(1, self.kernel.start())
        self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(
                [self.target, other],
                reservation.Reservation(
                    19_000, 20_000, reservation.Mode.WORK_CONSERVING
                ),
            ),
        )
        self.assertEqual(RECLAIM, self.flags())
        self.assertEqual([self.target.tid], list(self.helper.watched))

    def test_restored_without_the_flag(self):
        prior = self.backend.prior([self.target])
        self.backend.apply_each([(self.target, SHARING)])
        self.backend.restore([self.target], prior)
        self.assertEqual({}, self.helper.watched)
        self.assertNotIn(self.target.tid, self.idle)

    def test_closed_without_the_flag(self):
        self.backend.apply_each([(self.target, SHARING)])
        self.backend.close()
        self.assertEqual(0, self.flags())

    def test_without_it_the_mode_is_kept(self):
        self.backend = deadline.DeadlineBackend(idle=reclaim.IdleTime())
        self.backend.apply_each([(self.target, SHARING)])
        self.backend.refresh()
        self.assertEqual(0, self.flags())
        self.assertIs(reservation.Mode.WORK_CONSERVING, self.mode())
        self.assertEqual(0, self.helper.renewed)

    def test_a_dead_helper_leaves_no_flag(self):
        self.backend.apply_each([(self.target, SHARING)])
        self.helper.failure = BrokenPipeError('gone')
        self.backend.refresh()
        self.assertEqual(0, self.flags())
        self.assertIn('the helper does not answer: gone', self.log.output)
        # Whoever sets it again has no agent behind it.
        self.helper._set(self.target.tid, RECLAIM)
        self.backend.refresh()
        self.assertEqual(0, self.flags())
        self.backend.apply_each([(self.target, SHARING)])
        self.backend.close()

    def test_no_room_is_asked_for_again(self):
        self.helper.answer = errno.EBUSY
        self.helper.sampling = False
        self.backend.apply_each([(self.target, SHARING)])
        self.assertIn('does not admit the sampling thread', self.log.output)
        self.helper.answer = 0
        for _ in range(30):
            self.assertEqual(0, self.flags())
            self.backend.refresh()
        self.assertEqual(RECLAIM, self.flags())

    def test_pinned_threads_are_logged_once(self):
        self.backend.apply_each([(self.target, SHARING)])
        self.helper.refused = {self.target.tid: errno.EPERM}
        self.backend.refresh()
        self.backend.refresh()
        self.assertEqual(1, self.log.output.count('gets no idle CPU time'))

    def test_threads_that_end_are_forgotten(self):
        self.backend.apply_each([(self.target, SHARING)])
        self.kernel.end(self.target.tid)
        self.backend.refresh()
        self.assertNotIn(self.target.tid, self.idle)
