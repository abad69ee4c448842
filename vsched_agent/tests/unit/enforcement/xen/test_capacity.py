# SPDX-License-Identifier: Apache-2.0

"""What can be reserved beside the budgets of all other domains."""

from fractions import Fraction

from vsched_agent.enforcement.xen import capacity
from vsched_agent.tests import assignments
from vsched_agent.tests.unit.enforcement.xen import test_rtds
from vsched_lib.model import reservation

R = reservation.Reservation


class TestCapacity(test_rtds.RtdsCase):
    def setUp(self):
        super().setUp()
        self.capacity = capacity.XenCapacity([self.backend], 100)

    def admissible(self):
        self.now += 1
        return self.capacity.current().admissible

    def test_the_first_domain_has_its_budget(self):
        self.assertEqual(Fraction(8, 5), self.admissible())
        self.assertEqual(2, self.capacity.current().cpus)
        self.assertEqual(1_500, self.capacity.current().capacity_mcpu)

    def test_instances_without_a_reservation_have_theirs(self):
        targets = self.instance(2)
        self.assertEqual(Fraction(4, 5), self.admissible())
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.assertEqual(Fraction(8, 5), self.admissible())
        self.backend.restore(targets, prior)
        self.assertEqual(Fraction(4, 5), self.admissible())

    def test_one_that_asks_has_nothing_yet(self):
        targets = self.instance(2)
        with self.capacity.replacing([one.tid for one in targets]):
            self.assertEqual(Fraction(8, 5), self.admissible())
        self.assertEqual(Fraction(4, 5), self.admissible())

    def test_more_than_there_is(self):
        for _ in range(5):
            self.instance(1)
        self.assertEqual(0, self.admissible())

    def test_no_backend_is_enabled(self):
        found = capacity.of([], 0).current()
        self.assertEqual((2, 0), (found.cpus, found.capacity_mcpu))

    def test_xen_does_not_answer(self):
        self.xl.unavailable = 'xl took too long'
        self.assertEqual(0, self.admissible())
        self.assertIn('xl took too long', self.log.output)

    def test_nothing_leaks(self):
        self.capacity.invalidate()
        self.assertEqual(0, self.capacity.measured().leaked_mcpu)
