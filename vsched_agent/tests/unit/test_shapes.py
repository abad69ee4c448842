# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import dataclasses
import threading

import fixtures
from oslotest import base

from vsched_agent import shapes
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
        self.shapes = shapes.Shapes(self.reconcile)

    def reconcile(self, uuid):
        """What the reconciler's thread would do."""
        self.changes.append(uuid)
        if self.problem != 'asleep':
            self.shapes.of(self.domain, PROMISE)
            self.shapes.settled(uuid, self.problem)

    def shape(self, *online, **pins):
        return shapes.Shape(self.domain.pid, frozenset(online), {
            int(name[1:]): cpu for name, cpu in pins.items()})

    def held(self):
        domain, promise = self.shapes.of(self.domain, PROMISE)
        return ([(vcpu.index, vcpu.pinned_cpus) for vcpu in domain.vcpus],
                promise.runtime_us)

    def test_all_hold_what_they_were_promised(self):
        self.assertEqual((self.domain, PROMISE),
                         self.shapes.of(self.domain, PROMISE))
        self.assertEqual(PROMISE, self.shapes.promise(self.uuid))
        self.shapes.keep([])
        self.assertIsNone(self.shapes.promise(self.uuid))

    def test_fewer_hold_as_much(self):
        self.shapes.reshape(self.uuid, self.shape(0, 1, v0=1))
        self.assertEqual(
            ([(0, frozenset({1})), (1, None)], 8_000), self.held())
        self.assertEqual([True, False], [
            vcpu.bound for vcpu in self.shapes.of(
                self.domain, PROMISE)[0].vcpus])
        self.assertEqual(PROMISE, self.shapes.promise(self.uuid))
        self.shapes.reshape(self.uuid, None)
        self.assertEqual(4_000, self.held()[1])

    def test_the_others_may_be_unplugged(self):
        self.shapes.reshape(self.uuid, shapes.Shape(
            self.domain.pid, frozenset({0, 1}), {}, len(self.domain.vcpus)))
        # Their threads are gone sooner or later.
        for count in (4, 3, 2):
            self.domain = dataclasses.replace(
                self.domain, vcpus=self.domain.vcpus[:count])
            self.assertEqual(([(0, None), (1, None)], 8_000), self.held())

    def test_another_process_is_not_meant(self):
        self.shapes.expect(self.uuid, shapes.Shape(1, frozenset({0})))
        self.assertEqual(4_000, self.held()[1])

    def test_without_a_reservation(self):
        self.shapes.expect(self.uuid, self.shape(0))
        domain, promise = self.shapes.of(self.domain, None)
        self.assertEqual((1, None), (len(domain.vcpus), promise))

    def test_a_refusal_leaves_it_where_it_was(self):
        self.problem = errors.Refused('no room')
        refusal = self.assertRaises(
            errors.Refused, self.shapes.reshape, self.uuid, self.shape(0))
        self.assertEqual('no room', refusal.detail)
        self.assertEqual(4_000, self.held()[1])
        # Once for the change and once to have the old one looked at.
        self.assertEqual([self.uuid] * 2, self.changes)

    def test_back_to_all_is_wanted_whatever_is_said(self):
        self.shapes.expect(self.uuid, self.shape(0))
        self.problem = errors.Refused('no room')
        self.assertRaises(
            errors.Refused, self.shapes.reshape, self.uuid, None)
        self.assertEqual(4_000, self.held()[1])

    def test_a_reconciler_that_does_not_come(self):
        self.problem = 'asleep'
        self.assertRaises(errors.Refused, self.shapes.reshape, self.uuid,
                          self.shape(0), 0.01)
        self.assertEqual(4_000, self.held()[1])

    def test_threads_are_let_loose_by_who_looks_at_them(self):
        self.shapes.expect(self.uuid, self.shape(0, v0=1))
        bound, looks = [True], []

        def reconcile(uuid):
            # In the middle of another look nobody lets them loose.
            self.assertEqual([True], bound)
            domain, _ = self.shapes.of(self.domain, PROMISE)
            looks.append((list(bound), len(domain.vcpus)))
            self.shapes.settled(uuid, None)

        self.shapes = shapes.Shapes(reconcile)
        self.shapes.expect(self.uuid, self.shape(0, v0=1))
        self.shapes.reshape(self.uuid, None, loosen=bound.clear)
        self.assertEqual([([], 4)], looks)
        bound.append(True)
        self.held()
        self.assertEqual([True], bound)

    def test_threads_are_let_loose_if_nobody_looks(self):
        self.problem, calls = 'asleep', []
        self.assertRaises(
            errors.Refused, self.shapes.reshape, self.uuid, None, 0.01,
            loosen=lambda: calls.append(1))
        self.assertEqual([1], calls)
        self.held()
        self.assertEqual([1], calls)

    def test_threads_that_can_not_be_let_loose(self):
        def fail():
            raise OSError('no')

        log = self.useFixture(fixtures.FakeLogger())
        self.shapes.reshape(self.uuid, self.shape(0), loosen=fail)
        self.assertIn('can not be let loose', log.output)

    def test_what_was_settled_before_does_not_count(self):
        self.problem = 'asleep'
        self.shapes.of(self.domain, PROMISE)
        waiting = threading.Thread(
            target=self.shapes.reshape, args=(self.uuid, self.shape(0)))
        waiting.start()
        self.addCleanup(waiting.join)
        while not self.changes:
            pass
        # The reconciler began with it before the change.
        self.shapes.settled(self.uuid, None)
        self.assertTrue(waiting.is_alive())
        self.shapes.of(self.domain, PROMISE)
        self.shapes.settled(self.uuid, None)
