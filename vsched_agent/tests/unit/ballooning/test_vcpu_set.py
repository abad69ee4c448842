# SPDX-License-Identifier: Apache-2.0

import threading

import fixtures
from oslotest import base

from vsched_agent.ballooning import vcpu_set
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import reservation

RESERVED = reservation.Reservation(4_000, 20_000)


class VcpuSetsTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.domain = fakes.domain(1, vcpus=4)
        self.uuid = self.domain.uuid
        self.changes = []
        self.problem = None
        self.vcpu_sets = vcpu_set.VcpuSets(self.reconcile)

    def reconcile(self, uuid):
        """What the reconciler's thread would do."""
        self.changes.append(uuid)
        if self.problem != 'asleep':
            self.vcpu_sets.of(self.domain, RESERVED)
            self.vcpu_sets.reconciled(uuid, self.problem)

    def shape(self, *online, **pins):
        return vcpu_set.VcpuSet(
            self.domain.pid,
            frozenset(online),
            {int(name[1:]): cpu for name, cpu in pins.items()},
        )

    def held(self):
        domain, reserved = self.vcpu_sets.of(self.domain, RESERVED)
        return (
            [(vcpu.index, vcpu.pinned_cpus) for vcpu in domain.vcpus],
            reserved.runtime_us,
        )

    def test_all_hold_the_reservation(self):
        self.assertEqual(
            (self.domain, RESERVED), self.vcpu_sets.of(self.domain, RESERVED)
        )
        self.assertEqual(RESERVED, self.vcpu_sets.reserved(self.uuid))
        self.vcpu_sets.retain([])
        self.assertIsNone(self.vcpu_sets.reserved(self.uuid))

    def test_fewer_hold_as_much(self):
        self.vcpu_sets.move_reservation(self.uuid, self.shape(0, 1, v0=1))
        self.assertEqual(
            ([(0, frozenset({1})), (1, None)], 8_000), self.held()
        )
        self.assertEqual(
            [True, False],
            [
                vcpu.bound
                for vcpu in self.vcpu_sets.of(self.domain, RESERVED)[0].vcpus
            ],
        )
        self.assertEqual(RESERVED, self.vcpu_sets.reserved(self.uuid))
        self.vcpu_sets.move_reservation(self.uuid, None)
        self.assertEqual(4_000, self.held()[1])

    def test_another_process_is_not_meant(self):
        self.vcpu_sets.restore(self.uuid, vcpu_set.VcpuSet(1, frozenset({0})))
        self.assertEqual(4_000, self.held()[1])

    def test_without_a_reservation(self):
        self.vcpu_sets.restore(self.uuid, self.shape(0))
        domain, reserved = self.vcpu_sets.of(self.domain, None)
        self.assertEqual((1, None), (len(domain.vcpus), reserved))

    def test_a_refusal_leaves_it_where_it_was(self):
        self.problem = errors.Refused('no room')
        refusal = self.assertRaises(
            errors.Refused,
            self.vcpu_sets.move_reservation,
            self.uuid,
            self.shape(0),
        )
        self.assertEqual('no room', refusal.detail)
        self.assertEqual(4_000, self.held()[1])
        # Once for the change and once to check the old one.
        self.assertEqual([self.uuid] * 2, self.changes)

    def test_back_to_all_stays_requested_when_refused(self):
        self.vcpu_sets.restore(self.uuid, self.shape(0))
        self.problem = errors.Refused('no room')
        self.assertRaises(
            errors.Refused, self.vcpu_sets.move_reservation, self.uuid, None
        )
        self.assertEqual(4_000, self.held()[1])

    def test_a_reconciler_that_does_not_come(self):
        self.problem = 'asleep'
        self.assertRaises(
            errors.Refused,
            self.vcpu_sets.move_reservation,
            self.uuid,
            self.shape(0),
            0.01,
        )
        self.assertEqual(4_000, self.held()[1])

    def test_the_reconciler_unpins_threads(self):
        self.vcpu_sets.restore(self.uuid, self.shape(0, v0=1))
        bound, checks = [True], []

        def reconcile(uuid):
            # They are not unpinned at any other time.
            self.assertEqual([True], bound)
            domain, _ = self.vcpu_sets.of(self.domain, RESERVED)
            checks.append((list(bound), len(domain.vcpus)))
            self.vcpu_sets.reconciled(uuid, None)

        self.vcpu_sets = vcpu_set.VcpuSets(reconcile)
        self.vcpu_sets.restore(self.uuid, self.shape(0, v0=1))
        self.vcpu_sets.move_reservation(self.uuid, None, unpin=bound.clear)
        self.assertEqual([([], 4)], checks)
        bound.append(True)
        self.held()
        self.assertEqual([True], bound)

    def test_threads_are_unpinned_after_the_timeout(self):
        self.problem, calls = 'asleep', []
        self.assertRaises(
            errors.Refused,
            self.vcpu_sets.move_reservation,
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
        self.vcpu_sets.move_reservation(self.uuid, self.shape(0), unpin=fail)
        self.assertIn('cannot be unpinned', log.output)

    def test_what_was_reconciled_before_does_not_count(self):
        self.problem = 'asleep'
        self.vcpu_sets.of(self.domain, RESERVED)
        waiting = threading.Thread(
            target=self.vcpu_sets.move_reservation,
            args=(self.uuid, self.shape(0)),
        )
        waiting.start()
        self.addCleanup(waiting.join)
        while not self.changes:
            pass
        # The reconciler began with it before the change.
        self.vcpu_sets.reconciled(self.uuid, None)
        self.assertTrue(waiting.is_alive())
        self.vcpu_sets.of(self.domain, RESERVED)
        self.vcpu_sets.reconciled(self.uuid, None)
