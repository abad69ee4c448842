# SPDX-License-Identifier: Apache-2.0

"""Reservations: what is one, and that no rounding promises too much."""

from fractions import Fraction
import math
import re

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import reservation
from vsched_lib.tests import strategies

R = reservation.Reservation


class ReservationTestCase(base.BaseTestCase):
    def test_defaults(self):
        one = R(12_000, 20_000)
        self.assertEqual(reservation.Mode.CAPPED, one.mode)
        self.assertIsNone(one.backend)
        self.assertEqual(Fraction(3, 5), one.utilisation)
        self.assertEqual(600, one.bandwidth_mcpu(1))
        self.assertEqual(2400, one.bandwidth_mcpu(4))

    def test_words_become_members(self):
        one = R(1, 2, 'work_conserving', 'deadline')
        self.assertIs(reservation.Mode.WORK_CONSERVING, one.mode)
        self.assertIs(reservation.Backend.DEADLINE, one.backend)

    def test_whole_cpu(self):
        self.assertEqual(1000, R(20_000, 20_000).bandwidth_mcpu(1))

    def test_invalid(self):
        for field, arguments in (
            ('runtime_us', (0, 20_000)),
            ('runtime_us', (-1, 20_000)),
            ('runtime_us', (20_001, 20_000)),
            ('runtime_us', (True, 20_000)),
            ('runtime_us', (1.0, 20_000)),
            ('runtime_us', ('1', 20_000)),
            ('runtime_us', (None, 20_000)),
            ('period_us', (1, 0)),
            ('period_us', (1, -20_000)),
            ('period_us', (1, 20_000.0)),
            ('period_us', (1, True)),
            ('mode', (1, 2, 'capped ')),
            ('mode', (1, 2, None)),
            ('mode', (1, 2, ['capped'])),
            ('backend', (1, 2, 'capped', 'fifo')),
            ('backend', (1, 2, 'capped', '')),
            ('backend', (1, 2, 'capped', 3)),
        ):
            error = self.assertRaises(
                reservation.InvalidReservation, R, *arguments
            )
            self.assertEqual(field, error.field, arguments)
            self.assertEqual(
                '%s: %s' % (error.field, error.detail), str(error)
            )

    def test_bad_choice_names_the_accepted(self):
        error = self.assertRaises(
            reservation.InvalidReservation, R, 1, 2, 'capped', 'fifo'
        )
        for backend in reservation.Backend:
            self.assertIn(backend, error.detail)

    @hypothesis.given(strategies.reservations(), st.integers(0, 64))
    def test_demand_rounds_up_by_less_than_one(self, one, vcpus):
        exact = Fraction(one.runtime_us * vcpus * 1000, one.period_us)
        self.assertEqual(exact, one.bandwidth(vcpus) * 1000)
        self.assertGreaterEqual(one.bandwidth_mcpu(vcpus), exact)
        self.assertLess(one.bandwidth_mcpu(vcpus) - exact, 1)

    @hypothesis.given(strategies.reservations(), st.integers(1, 64))
    def test_rounding_once_is_never_worse_than_per_vcpu(self, one, vcpus):
        self.assertLessEqual(
            one.bandwidth_mcpu(vcpus), vcpus * one.bandwidth_mcpu(1)
        )

    @hypothesis.given(strategies.reservations(), st.integers(1, 1000))
    def test_same_share_same_bandwidth(self, one, factor):
        scaled = R(one.runtime_us * factor, one.period_us * factor)
        self.assertEqual(one.bandwidth(3), scaled.bandwidth(3))


class DebtTestCase(base.BaseTestCase):
    def test_budget_above_the_tick_owes_nothing(self):
        self.assertEqual(0, R(4_000, 20_000).worst_debt_us(4_000))
        self.assertEqual(0, R(4_001, 20_000).worst_debt_us(4_000))

    def test_tiny_budget_owes_many_periods(self):
        self.assertEqual(
            4_000 // 2 * 100_000, R(2, 100_000).worst_debt_us(4_000)
        )

    @hypothesis.given(strategies.reservations(), st.integers(0, 10_000))
    def test_debt_is_repaid_at_the_promised_rate(self, one, tick_us):
        debt_us = one.worst_debt_us(tick_us)
        if one.runtime_us >= tick_us:
            self.assertEqual(0, debt_us)
        else:
            earned = debt_us * one.utilisation
            self.assertGreaterEqual(earned, tick_us)
            self.assertLess(earned - tick_us, 1)

    @hypothesis.given(
        strategies.reservations(period_us_min=100, runtime_us_min=2),
        st.sampled_from((1_000, 3_334, 4_000, 10_000)),
    )
    def test_advice_against_debt_is_sound(self, one, tick_us):
        found = [
            text
            for text in one.problems(reservation.Backend.DEADLINE, tick_us)
            if 'owe' in text
        ]
        if one.worst_debt_us(tick_us) <= reservation.MAX_DEBT_US:
            self.assertEqual([], found)
            return
        advised = R(
            int(re.search(r'at least runtime_us (\d+)', found[0])[1]),
            one.period_us,
        )
        self.assertGreater(advised.runtime_us, one.runtime_us)
        self.assertEqual(
            [], advised.problems(reservation.Backend.DEADLINE, tick_us)
        )


class ProblemsTestCase(base.BaseTestCase):
    def test_ranges_are_inclusive(self):
        for backend, limits in reservation.LIMITS.items():
            for runtime_us, period_us in (
                (limits.runtime_us_min, limits.period_us_min),
                (limits.runtime_us_max, limits.period_us_max),
            ):
                self.assertEqual(
                    [], R(runtime_us, period_us).problems(backend)
                )

    def test_outside_names_figure_and_range(self):
        for backend, runtime_us, period_us, name in (
            ('deadline', 1, 20_000, 'runtime_us 1 '),
            ('deadline', 50, 99, 'period_us 99 '),
            ('deadline', 2, 4_194_305, 'period_us 4194305 '),
            ('cfs', 999, 20_000, 'runtime_us 999 '),
            ('cfs', 1_000, 1_000_001, 'period_us 1000001 '),
        ):
            found = R(runtime_us, period_us).problems(
                reservation.Backend(backend)
            )
            self.assertEqual(1, len(found), found)
            self.assertIn(name, found[0])
            self.assertIn(backend, found[0])

    def test_quota_conserves_no_work(self):
        one = R(10_000, 20_000, reservation.Mode.WORK_CONSERVING)
        self.assertEqual([], one.problems(reservation.Backend.DEADLINE))
        self.assertEqual(1, len(one.problems(reservation.Backend.CFS)))

    def test_backend_of_another_host_type(self):
        for backend in set(reservation.Backend) - set(reservation.LIMITS):
            self.assertEqual(1, len(R(1, 2).problems(backend)))

    def test_tick_is_asked_of_deadline_only(self):
        one = R(1_000, 1_000_000)
        self.assertEqual([], one.problems(reservation.Backend.CFS, 4_000))
        self.assertEqual([], one.problems(reservation.Backend.DEADLINE))
        self.assertEqual(
            1, len(one.problems(reservation.Backend.DEADLINE, 4_000))
        )


class KernelBandwidthTestCase(base.BaseTestCase):
    def test_known(self):
        self.assertEqual(1 << 20, reservation.kernel_bandwidth(7, 7))
        self.assertEqual(
            996_147, reservation.kernel_bandwidth(950_000, 1_000_000)
        )

    @hypothesis.given(strategies.reservations())
    def test_below_exact_by_less_than_one_step(self, one):
        kernel = Fraction(
            reservation.kernel_bandwidth(
                one.runtime_us * 1000, one.period_us * 1000
            ),
            1 << reservation.KERNEL_BW_SHIFT,
        )
        self.assertLessEqual(kernel, one.utilisation)
        self.assertLess(
            one.utilisation - kernel,
            Fraction(1, 1 << reservation.KERNEL_BW_SHIFT),
        )

    @hypothesis.given(st.lists(strategies.UTILISATIONS, max_size=8))
    def test_sum_is_never_above_our_mcpu(self, utilisations):
        kernel = sum(
            reservation.kernel_bandwidth(one.numerator, one.denominator)
            for one in utilisations
        )
        ours_mcpu = math.ceil(sum(utilisations, Fraction(0)) * 1000)
        self.assertLessEqual(
            Fraction(kernel * 1000, 1 << reservation.KERNEL_BW_SHIFT),
            ours_mcpu,
        )
