# SPDX-License-Identifier: Apache-2.0

import threading

import fixtures
from oslotest import base

from vsched_agent.ballooning import vcpu_set
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import reservation

PROMISE = reservation.Reservation(4_000, 20_000)


class ShapesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.domain = fakes.domain(1, vcpus=4)
        self.uuid = self.domain.uuid
        self.changes = []
        self.problem = None
        self.shapes = vcpu_set.Shapes(self.reconcile)

    def reconcile(self, uuid):
        """What the reconciler's thread would do."""
        self.changes.append(uuid)
        if self.problem != 'asleep':
            self.shapes.of(self.domain, PROMISE)
            self.shapes.reconciled(uuid, self.problem)

    def shape(self, *online, **pins):
        return vcpu_set.Shape(
            self.domain.pid,
            frozenset(online),
            {int(name[1:]): cpu for name, cpu in pins.items()},
        )

    def held(self):
        domain, promise = self.shapes.of(self.domain, PROMISE)
        return (
            [(vcpu.index, vcpu.pinned_cpus) for vcpu in domain.vcpus],
            promise.runtime_us,
        )

    def test_all_hold_what_they_were_promised(self):
        self.assertEqual(
            (self.domain, PROMISE), self.shapes.of(self.domain, PROMISE)
        )
        self.assertEqual(PROMISE, self.shapes.reserved(self.uuid))
        self.shapes.keep([])
        self.assertIsNone(self.shapes.reserved(self.uuid))

    def test_fewer_hold_as_much(self):
        self.shapes.reshape(self.uuid, self.shape(0, 1, v0=1))
        self.assertEqual(
            ([(0, frozenset({1})), (1, None)], 8_000), self.held()
        )
        self.assertEqual(
            [True, False],
            [
                vcpu.bound
                for vcpu in self.shapes.of(self.domain, PROMISE)[0].vcpus
            ],
        )
        self.assertEqual(PROMISE, self.shapes.reserved(self.uuid))
        self.shapes.reshape(self.uuid, None)
        self.assertEqual(4_000, self.held()[1])

    def test_another_process_is_not_meant(self):
        self.shapes.expect(self.uuid, vcpu_set.Shape(1, frozenset({0})))
        self.assertEqual(4_000, self.held()[1])

    def test_without_a_reservation(self):
        self.shapes.expect(self.uuid, self.shape(0))
        domain, promise = self.shapes.of(self.domain, None)
        self.assertEqual((1, None), (len(domain.vcpus), promise))

    def test_a_refusal_leaves_it_where_it_was(self):
        self.problem = errors.Refused('no room')
        refusal = self.assertRaises(
            errors.Refused, self.shapes.reshape, self.uuid, self.shape(0)
        )
        self.assertEqual('no room', refusal.detail)
        self.assertEqual(4_000, self.held()[1])
        # Once for the change and once to have the old one looked at.
        self.assertEqual([self.uuid] * 2, self.changes)

    def test_back_to_all_is_wanted_whatever_is_said(self):
        self.shapes.expect(self.uuid, self.shape(0))
        self.problem = errors.Refused('no room')
        self.assertRaises(errors.Refused, self.shapes.reshape, self.uuid, None)
        self.assertEqual(4_000, self.held()[1])

    def test_a_reconciler_that_does_not_come(self):
        self.problem = 'asleep'
        self.assertRaises(
            errors.Refused, self.shapes.reshape, self.uuid, self.shape(0), 0.01
        )
        self.assertEqual(4_000, self.held()[1])

    def test_the_reconciler_unpins_threads(self):
        self.shapes.expect(self.uuid, self.shape(0, v0=1))
        bound, looks = [True], []

        def reconcile(uuid):
            # In the middle of another look nobody lets them unpin.
            self.assertEqual([True], bound)
            domain, _ = self.shapes.of(self.domain, PROMISE)
            looks.append((list(bound), len(domain.vcpus)))
            self.shapes.reconciled(uuid, None)

        self.shapes = vcpu_set.Shapes(reconcile)
        self.shapes.expect(self.uuid, self.shape(0, v0=1))
        self.shapes.reshape(self.uuid, None, unpin=bound.clear)
        self.assertEqual([([], 4)], looks)
        bound.append(True)
        self.held()
        self.assertEqual([True], bound)

    def test_threads_are_unpinned_after_the_timeout(self):
        self.problem, calls = 'asleep', []
        self.assertRaises(
            errors.Refused,
            self.shapes.reshape,
            self.uuid,
            None,
            0.01,
            unpin=lambda: calls.append(1),
        )
        self.assertEqual([1], calls)
        self.held()
        self.assertEqual([1], calls)

    def test_threads_that_cannot_be_unpinned(self):
        def fail():
            raise OSError('no')

        log = self.useFixture(fixtures.FakeLogger())
        self.shapes.reshape(self.uuid, self.shape(0), unpin=fail)
        self.assertIn('cannot be unpinned', log.output)

    def test_what_was_reconciled_before_does_not_count(self):
        self.problem = 'asleep'
        self.shapes.of(self.domain, PROMISE)
        waiting = threading.Thread(
            target=self.shapes.reshape, args=(self.uuid, self.shape(0))
        )
        waiting.start()
        self.addCleanup(waiting.join)
        while not self.changes:
            pass
        # The reconciler began with it before the change.
        self.shapes.reconciled(self.uuid, None)
        self.assertTrue(waiting.is_alive())
        self.shapes.of(self.domain, PROMISE)
        self.shapes.reconciled(self.uuid, None)
