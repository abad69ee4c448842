# SPDX-License-Identifier: Apache-2.0

"""What a host can reserved."""

from fractions import Fraction

import hypothesis
from oslotest import base

from vsched_lib.model import host
from vsched_lib.tests import strategies


class CapacityTestCase(base.BaseTestCase):
    def test_bound_is_what_the_kernel_admits_less_the_reserve(self):
        capacity = host.Capacity(2, Fraction(9, 5), 100)
        self.assertEqual(Fraction(17, 10), capacity.bound)
        self.assertEqual(Fraction(17, 20), capacity.per_cpu_bound)
        self.assertEqual(1700, capacity.capacity_mcpu)

    def test_reserve_above_all_leaves_nothing(self):
        capacity = host.Capacity(1, Fraction(1, 2), 501)
        self.assertEqual(0, capacity.bound)
        self.assertEqual(0, capacity.capacity_mcpu)

    def test_kernel_without_a_bound_has_no_more_than_its_cpus(self):
        # sched_rt_runtime_us = -1 switches the kernel's admission off.
        capacity = host.Capacity(2, Fraction(64), 500)
        self.assertEqual(Fraction(3, 2), capacity.bound)

    def test_invalid(self):
        for arguments in (
            (0, Fraction(1)),
            (1, Fraction(-1, 10)),
            (1, Fraction(1), -1),
        ):
            self.assertRaises(ValueError, host.Capacity, *arguments)

    @hypothesis.given(strategies.capacities())
    def test_capacity_rounds_down_by_less_than_one(self, capacity):
        exact = capacity.bound * 1000
        self.assertLessEqual(capacity.capacity_mcpu, exact)
        self.assertLess(exact - capacity.capacity_mcpu, 1)
        self.assertLessEqual(
            capacity.per_cpu_bound * capacity.cpus, capacity.bound
        )
        self.assertLessEqual(capacity.per_cpu_bound, 1)
