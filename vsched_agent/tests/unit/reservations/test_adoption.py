# SPDX-License-Identifier: Apache-2.0

"""What is in force is adopted by the next agent, attested and cleaned up."""

import dataclasses
from fractions import Fraction

from vsched_agent.reservations import io_threads
from vsched_agent.tests import enforcing_host
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS

reserved = enforcing_host.reserved


class TestAdoption(enforcing_host.ReservingCase):
    def test_a_restarted_instance_starts_from_nothing(self):
        self.enforcer.hold(fakes.domain(1), reserved(12_000))
        self.deadline.dead = {101}
        self.deadline.held = {}
        anew = fakes.domain(1, pid=700)
        self.enforcer.hold(anew, reserved(12_000))
        self.assertEqual({701}, set(self.deadline.held))
        self.assertEqual(
            [701], list(self.journal.priors(anew.uuid, 'deadline'))
        )

    def test_drift_is_found_and_repaired(self):
        one = fakes.domain(1, vcpus=2)
        self.enforcer.hold(one, reserved(12_000))
        self.assertEqual(([], set()), self.enforcer.attest())
        del self.deadline.held[102]
        drifts, stale = self.enforcer.attest()
        self.assertEqual((102,), drifts[0].tids)
        self.assertIn('no reservation', drifts[0].found)
        self.assertEqual(set(), stale)
        self.assertIn(102, self.deadline.held)
        self.assertEqual(([], set()), self.enforcer.attest())

    def test_drift_that_can_not_be_repaired_is_planned_again(self):
        one = fakes.domain(1)
        self.enforcer.hold(one, reserved(12_000))
        self.deadline.held = {}
        self.deadline.bound = Fraction(0)
        drifts, stale = self.enforcer.attest()
        self.assertEqual(1, len(drifts))
        self.assertEqual({one.uuid}, stale)
        self.assertIsNone(self.enforcer.holding(one.uuid))

    def test_dead_threads_are_stale(self):
        one = fakes.domain(1)
        self.enforcer.hold(one, reserved(12_000))
        self.deadline.dead = {101}
        self.assertEqual(([], {one.uuid}), self.enforcer.attest())

    def test_adoption_applies_nothing(self):
        one = fakes.domain(1, vcpus=2)
        self.assertFalse(self.enforcer.adopt(one))
        self.enforcer.hold(one, reserved(12_000, DEADLINE))
        self.enforcer = self.make()
        self.assertTrue(self.enforcer.adopt(one))
        self.assertEqual([(101, 102)], self.deadline.resumed)
        self.assertEqual(1200, self.enforcer.admitted_mcpu())
        self.assertEqual(([], set()), self.enforcer.attest())
        self.assertIsNone(self.enforcer.hold(one, reserved(12_000)))
        self.assertEqual(1, len(self.deadline.applied))
        self.assertTrue(self.enforcer.release(one))
        self.assertEqual({}, self.deadline.held)

    def test_adopts_what_the_kernel_has_not_what_is_desired(self):
        one = fakes.domain(1, vcpus=2)
        self.enforcer.hold(one, reserved(8_000))
        self.enforcer = self.make()
        self.enforcer.adopt(one)
        self.assertRaises(
            errors.Refused, self.enforcer.hold, one, reserved(19_000, DEADLINE)
        )
        held = self.enforcer.holding(one.uuid)
        self.assertEqual(
            (DEADLINE, 8_000), (held.backend, held.reserved.runtime_us)
        )
        self.assertEqual(800, self.enforcer.admitted_mcpu())

    def test_adopted_without_what_changed_meanwhile(self):
        self.enforcer.hold(fakes.domain(1, vcpus=2), reserved(8_000))
        self.deadline.held.pop(102)
        self.enforcer = self.make()
        grown = fakes.domain(1, vcpus=3)
        self.assertTrue(self.enforcer.adopt(grown))
        self.assertEqual(400, self.enforcer.admitted_mcpu())
        self.assertIsNone(self.enforcer.hold(grown, reserved(8_000)))
        self.assertEqual({101, 102, 103}, set(self.deadline.held))

    def test_threads_whose_budgets_are_checked_are_adopted(self):
        one = fakes.domain(1, vcpus=2)
        self.enforcer.hold(one, reserved(8_000, DEADLINE))
        held = self.deadline.held[101]
        self.deadline.held[101] = dataclasses.replace(
            held, runtime_ns=held.runtime_ns + 1
        )
        self.enforcer = self.make()
        self.assertTrue(self.enforcer.adopt(one))
        self.assertEqual(
            8_000, self.enforcer.holding(one.uuid).reserved.runtime_us
        )

    def test_threads_that_differ_are_not_adopted(self):
        one = fakes.domain(1, vcpus=2)
        self.enforcer.hold(one, reserved(8_000, CFS))
        held = self.cfs.held[101]
        for foreign in (
            dataclasses.replace(held, runtime_ns=30_000_000),
            dataclasses.replace(held, runtime_ns=9_000_000),
        ):
            self.cfs.held[101] = foreign
            self.enforcer = self.make()
            self.assertFalse(self.enforcer.adopt(one))
            self.cfs.held[102] = self.cfs.held[101]
        self.assertTrue(self.enforcer.adopt(one))

    def test_another_process_is_not_adopted(self):
        self.enforcer.hold(fakes.domain(1), reserved(8_000))
        self.enforcer = self.make()
        self.assertFalse(
            self.enforcer.adopt(dataclasses.replace(fakes.domain(1), pid=999))
        )

    def test_a_clean_up_that_fails_keeps_its_records(self):
        def clean_up(prior):
            raise OSError('sudo: a password is required')

        one = fakes.domain(1)
        self.enforcer.hold(one, reserved(8_000, DEADLINE))
        self.journal.remember(one.uuid, CFS, one.pid, {101: {}})
        self.journal.remember(one.uuid, io_threads.KEY, one.pid, {100: {}})
        self.patch(self.deadline, 'clean_up', clean_up)
        self.enforcer.drop(one.uuid)
        self.assertIsNone(self.enforcer.holding(one.uuid))
        self.assertEqual([(one.uuid, 'deadline')], self.journal.touched())
        self.patch(self.deadline, 'clean_up', lambda prior: None)
        self.enforcer.drop(one.uuid)
        self.assertEqual([], self.journal.touched())


class TestDegrade(TestAdoption):
    degrade = True
