# SPDX-License-Identifier: Apache-2.0

"""Weights and caps that enforce reservations, and what they amount to."""

from fractions import Fraction

import ddt
from oslotest import base

from vsched_lib.model import credit
from vsched_lib.model import reservation

R = reservation.Reservation
P = credit.Parameters
WORK_CONSERVING = reservation.Mode.WORK_CONSERVING


@ddt.ddt
class TestParameters(base.BaseTestCase):
    @ddt.data(
        ([R(6_000, 10_000)], P(600, 60)),
        ([R(6_000, 10_000)] * 4, P(2_400, 240)),
        ([R(1_250, 10_000)], P(125, 13)),
        # Each vCPU its own.
        ([R(1_000, 10_000), R(2_000, 20_000)], P(200, 20)),
        # Rounded once, and never to nothing.
        ([R(1, 3_000)] * 3, P(1, 1)),
        ([R(1, 10_000), R(1, 10_000)], P(1, 1)),
        ([R(6_000, 10_000, WORK_CONSERVING)], P(600, 0)),
        ([R(100, 100)] * 65, P(65_000, 6_500)),
    )
    @ddt.unpack
    def test_of_reservations(self, reserved, wanted):
        self.assertEqual(wanted, P.of(reserved))

    def test_more_than_xen_has_weights_for(self):
        problem = self.assertRaises(ValueError, P.of, [R(100, 100)] * 66)
        self.assertIn('66000 mcpu is outside of 1..65535', str(problem))

    @ddt.data(
        (P(256), Fraction(256, 1000), False),
        (P(600, 60), Fraction(3, 5), False),
        # A cap of a whole percent is a bit more than what is reserved.
        (P(125, 13), Fraction(1, 8), False),
        (P(256, 10), Fraction(1, 10), True),
        (P(256, 400), Fraction(256, 1000), False),
    )
    @ddt.unpack
    def test_what_they_amount_to(self, found, utilisation, moot):
        self.assertEqual(utilisation, found.utilisation)
        self.assertEqual(moot, found.weight_is_moot)

    def test_no_reservation_has_a_weight_that_is_moot(self):
        for runtime_us in range(1, 1_000):
            found = P.of([R(runtime_us, 1_000)] * 3)
            self.assertFalse(found.weight_is_moot, found)
            self.assertGreaterEqual(
                found.utilisation, Fraction(3 * runtime_us, 1_000)
            )

    def test_the_share_of_a_vcpu(self):
        self.assertEqual(Fraction(3, 5), P(1_200, 120).share(2))
        self.assertEqual(1, P(5_000).share(2))

    def test_the_mode(self):
        self.assertIs(reservation.Mode.CAPPED, P(600, 60).mode)
        self.assertIs(WORK_CONSERVING, P(600).mode)


@ddt.ddt
class TestHost(base.BaseTestCase):
    def test_the_sum(self):
        self.assertEqual(
            Fraction(856, 1000), credit.total([credit.DEFAULT, P(600, 60)])
        )

    @ddt.data(
        (2, [P(600, 60), P(256, 100)], Fraction(2, 5)),
        (2, [P(256, 100), P(256, 100)], Fraction(0)),
        (2, [P(256, 100), P(256, 101)], None),
        (2, [P(600, 60), P(256)], None),
        (2, [], None),
    )
    @ddt.unpack
    def test_caps_that_leave_no_contention(self, cpus, domains, left):
        self.assertEqual(left, credit.caps_leave_idle(cpus, domains))


@ddt.ddt
class TestCautions(base.BaseTestCase):
    @ddt.data(
        ('credit', 29_999, ['over 30000 us']),
        ('credit', 30_000, []),
        ('credit2', 9_999, ['no period of 9999 us']),
        ('credit2', 10_000, []),
    )
    @ddt.unpack
    def test_periods_that_are_not_kept(self, name, period_us, wanted):
        found = credit.cautions(
            reservation.Backend(name), R(period_us // 2, period_us)
        )
        self.assertEqual(len(wanted), len(found))
        for text, sentence in zip(wanted, found, strict=True):
            self.assertIn(text, sentence)
