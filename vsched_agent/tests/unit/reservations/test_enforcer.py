# SPDX-License-Identifier: Apache-2.0

import dataclasses
from fractions import Fraction

from vsched_agent.tests import enforcing_host
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import fit
from vsched_lib.model import overhead
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS

reserved = enforcing_host.reserved


class TestEnforcer(enforcing_host.ReservingCase):
    def test_hold_and_release(self):
        one = fakes.domain(1, vcpus=2)
        self.assertIsNone(self.enforcer.hold(one, reserved(12_000)))
        self.assertEqual({101, 102}, set(self.deadline.held))
        self.assertEqual(1200, self.enforcer.admitted_mcpu())
        self.assertEqual(
            {one.uuid: Fraction(12, 10)}, self.enforcer.reserved_cpus()
        )
        self.assertTrue(self.enforcer.release(one))
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([], self.journal.touched())
        self.assertFalse(self.enforcer.release(one))

    def test_released_threads_return_their_share(self):
        one = fakes.domain(1, vcpus=4)
        self.enforcer.hold(one, reserved(8_000))
        fewer = dataclasses.replace(one, vcpus=one.vcpus[:2])
        # Together with what the others held it would not fit.
        self.enforcer.hold(fewer, reserved(16_000))
        self.assertEqual(
            {101: 16_000, 102: 16_000},
            {tid: held.runtime_us for tid, held in self.deadline.held.items()},
        )
        self.assertEqual(
            {101, 102}, set(self.journal.priors(one.uuid, DEADLINE))
        )
        self.enforcer.hold(one, reserved(8_000))
        self.assertEqual({101, 102, 103, 104}, set(self.deadline.held))
        self.assertEqual(1600, self.enforcer.admitted_mcpu())

    def test_released_threads_are_reacquired_after_a_refusal(self):
        one = fakes.domain(1, vcpus=4)
        self.enforcer.hold(one, reserved(8_000))
        self.deadline.bound = Fraction(17, 10)
        fewer = dataclasses.replace(one, vcpus=one.vcpus[:2])
        self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            fewer,
            reserved(18_000, DEADLINE),
        )
        self.assertEqual(
            dict.fromkeys((101, 102, 103, 104), 8_000),
            {tid: held.runtime_us for tid, held in self.deadline.held.items()},
        )
        self.assertEqual(4, len(self.journal.priors(one.uuid, DEADLINE)))
        self.assertEqual(4, len(self.enforcer.holding(one.uuid).targets))

    def test_the_same_again_touches_nothing(self):
        one = fakes.domain(1)
        self.enforcer.hold(one, reserved(12_000))
        self.enforcer.hold(one, reserved(12_000))
        self.assertEqual(1, len(self.deadline.applied))

    def test_io_that_a_flavor_announces_needs_room_too(self):
        def on_top(pps):
            return fit.Ask(
                1, rates=overhead.Rates(net_rx_pps=pps), charged=False
            )

        # A packet a second is a thousandth of a CPU.
        self.measurements.prices = overhead.Fit(
            {'net_rx': overhead.Price(1e6, 0.0)}, 1.0, 0.0, 9
        )
        one, two = fakes.domain(1), fakes.domain(2)
        self.enforcer.hold(one, reserved(12_000), on_top(1200))
        problem = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            two,
            dataclasses.replace(reserved(12_000), backend=DEADLINE),
            on_top(601),
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, problem.code)
        self.assertIn('600 mcpu asked, and 601 for', problem.detail)
        self.assertEqual(
            {
                'asked_mcpu': 600,
                'overhead_mcpu': 601,
                'needed_mcpu': 1201,
                'free_mcpu': 1200,
                'capacity_mcpu': 1800,
            },
            problem.figures,
        )
        self.assertIsNone(self.enforcer.holding(two.uuid))
        # A new price does not revoke what is in force.
        self.enforcer.hold(one, reserved(12_000), on_top(9999))
        self.assertIsNotNone(self.enforcer.holding(one.uuid))

    def test_io_that_leaves_the_guest_too_little_is_refused(self):
        def charged(pps):
            return fit.Ask(
                1, rates=overhead.Rates(net_rx_pps=pps), charged=True
            )

        one = fakes.domain(1)
        self.measurements.policy = fit.Policy(refuse_unpriced=True)
        refusal = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            one,
            reserved(12_000),
            charged(300),
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertIn('not measured', refusal.detail)
        self.measurements.prices = overhead.Fit(
            {'net_rx': overhead.Price(1e6, 0.0)}, 1.0, 0.0, 9
        )
        refusal = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            one,
            reserved(12_000),
            charged(301),
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertIn('301 of its 600 mcpu', refusal.detail)
        self.enforcer.hold(one, reserved(12_000), charged(300))
        self.assertIsNotNone(self.enforcer.holding(one.uuid))

    def test_a_bound_is_met_with_a_margin(self):
        # 0.95 of what is given is 0.96 of what was asked for.
        self.measurements.lower_ppm = -50_000
        ask = fit.Ask(1, bound_ppm=10_400)
        one = fakes.domain(1)
        self.enforcer.hold(one, reserved(12_000), ask)
        self.assertEqual(12_501, self.deadline.held[101].runtime_us)
        held = self.enforcer.holding(one.uuid)
        self.assertEqual(
            (12_000, 12_501), (held.asked.runtime_us, held.reserved.runtime_us)
        )
        # Margins use capacity, and are not part of the reservation.
        self.assertEqual(626, self.enforcer.admitted_mcpu())
        self.assertEqual(
            {one.uuid: Fraction(6, 10)}, self.enforcer.reserved_cpus()
        )
        self.assertEqual([], self.enforcer.attest()[0])
        # Another profile, another margin.
        self.measurements.lower_ppm = -20_000
        self.enforcer.hold(one, reserved(12_000), ask)
        self.assertEqual(12_118, self.deadline.held[101].runtime_us)

    def test_a_bound_that_can_not_be_shown_is_refused(self):
        one = fakes.domain(1)
        self.enforcer.hold(one, reserved(6_000))
        refusal = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            one,
            reserved(12_000),
            fit.Ask(1, bound_ppm=500),
        )
        self.assertEqual(errors.Code.NOT_CERTIFIED, refusal.code)
        self.assertEqual(6_000, self.deadline.held[101].runtime_us)

    def test_what_does_not_fit_is_refused_whole_with_figures(self):
        self.enforcer.hold(fakes.domain(1), reserved(16_000))
        two = fakes.domain(2, vcpus=2)
        self.enforcer.hold(two, reserved(2_000))
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, two, reserved(12_000)
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertEqual(1200, refusal.figures['asked_mcpu'])
        self.assertEqual(2000, refusal.figures['needed_mcpu'])
        self.assertEqual(1800, refusal.figures['allowed_mcpu'])
        self.assertIn('1200 mcpu asked', refusal.detail)
        self.assertEqual(2_000, self.deadline.held[201].runtime_us)
        self.assertEqual(
            reserved(2_000), self.enforcer.holding(two.uuid).reserved
        )

    def test_the_kernels_refusal_is_final(self):
        self.deadline.bound = Fraction(1, 10)
        one = fakes.domain(1)
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, one, reserved(12_000)
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual(1, self.capacity.invalidated)
        self.assertEqual([], self.journal.touched())
        self.assertIsNone(self.enforcer.holding(one.uuid))

    def test_pinned_vcpus_fit_their_own_cpu(self):
        one = fakes.domain(1, vcpus=2, pins=(0, 1))
        self.enforcer.hold(one, reserved(10_000))
        two = fakes.domain(2, vcpus=1, pins=(1,))
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, two, reserved(10_000)
        )
        self.assertEqual(1, refusal.figures['cpu'])
        self.assertEqual('partitioned', refusal.figures['test'])
        self.enforcer.hold(two, reserved(8_000))

    def test_debts_are_refused(self):
        refusal = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            fakes.domain(1),
            reservation.Reservation(10, 20_000),
        )
        self.assertEqual(errors.Code.RESERVATION_INVALID, refusal.code)
        self.assertIn('80', refusal.detail)

    def test_a_named_backend_is_the_only_one(self):
        one = fakes.domain(1)
        self.enforcer.hold(one, reserved(12_000, CFS))
        self.assertEqual({101}, set(self.cfs.held))
        self.assertEqual(0, self.enforcer.admitted_mcpu())
        self.enforcer.hold(one, reserved(12_000, DEADLINE))
        self.assertEqual({}, self.cfs.held)
        self.assertEqual([(one.uuid, 'deadline')], self.journal.touched())
        self.deadline.usable = False
        refusal = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            fakes.domain(2),
            reserved(1_000, DEADLINE),
        )
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
        self.assertIn('the test says so', refusal.detail)
        refusal = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            fakes.domain(2),
            reserved(1_000, reservation.Backend.RTDS),
        )
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)

    def test_a_hot_added_vcpu_is_held_too_or_nothing_changes(self):
        self.enforcer.hold(fakes.domain(1), reserved(12_000))
        self.enforcer.hold(fakes.domain(1, vcpus=2), reserved(12_000))
        self.assertEqual({101, 102}, set(self.deadline.held))
        self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            fakes.domain(1, vcpus=4),
            reserved(12_000),
        )
        self.assertEqual({101, 102}, set(self.deadline.held))
        self.assertEqual(1200, self.enforcer.admitted_mcpu())

    def test_without_degrade_nothing_weaker_is_tried(self):
        self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            fakes.domain(1, vcpus=4),
            reserved(12_000),
        )
        self.assertEqual({}, self.cfs.held)


class TestDegrade(TestEnforcer):
    degrade = True

    def test_without_degrade_nothing_weaker_is_tried(self):
        one = fakes.domain(1, vcpus=4)
        cause = self.enforcer.hold(one, reserved(12_000))
        self.assertEqual(errors.Code.DOES_NOT_FIT, cause.code)
        self.assertEqual(4, len(self.cfs.held))
        self.assertEqual(CFS, self.enforcer.holding(one.uuid).backend)
        again = self.enforcer.hold(one, reserved(12_000))
        self.assertEqual(errors.Code.DOES_NOT_FIT, again.code)
        self.assertEqual(1, len(self.cfs.applied))
        self.capacity.value = type(self.capacity.value)(4, Fraction(3))
        self.deadline.bound = Fraction(3)
        self.assertIsNone(self.enforcer.hold(one, reserved(12_000)))
        self.assertEqual({}, self.cfs.held)
        self.assertEqual(4, len(self.deadline.held))

    def test_what_does_not_fit_is_refused_whole_with_figures(self):
        self.enforcer.hold(fakes.domain(1), reserved(16_000))
        two = fakes.domain(2, vcpus=2)
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, two, reserved(12_000, DEADLINE)
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertEqual({}, self.cfs.held)

    def test_the_kernels_refusal_is_final(self):
        self.deadline.bound = Fraction(1, 10)
        cause = self.enforcer.hold(fakes.domain(1), reserved(12_000))
        self.assertEqual(errors.Code.KERNEL_REFUSED, cause.code)
        self.assertEqual({101}, set(self.cfs.held))

    def test_a_hot_added_vcpu_is_held_too_or_nothing_changes(self):
        self.enforcer.hold(fakes.domain(1), reserved(12_000))
        cause = self.enforcer.hold(fakes.domain(1, vcpus=4), reserved(12_000))
        self.assertEqual(errors.Code.DOES_NOT_FIT, cause.code)
        self.assertEqual(4, len(self.cfs.held))
        self.assertEqual({}, self.deadline.held)

    def test_pinned_vcpus_fit_their_own_cpu(self):
        self.enforcer.hold(
            fakes.domain(1, vcpus=2, pins=(0, 1)), reserved(10_000)
        )
        cause = self.enforcer.hold(
            fakes.domain(2, vcpus=1, pins=(1,)), reserved(10_000)
        )
        self.assertEqual(1, cause.figures['cpu'])

    def test_debts_are_refused(self):
        self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            fakes.domain(1),
            reservation.Reservation(10, 20_000),
        )
