# SPDX-License-Identifier: Apache-2.0

"""Parameters of RTDS, and the sum that a pool of CPUs can keep."""

from fractions import Fraction

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import reservation
from vsched_lib.model import rtds
from vsched_lib.tests import strategies

R = reservation.Reservation
WORK_CONSERVING = reservation.Mode.WORK_CONSERVING


class ParametersTestCase(base.BaseTestCase):
    def test_of_a_reservation(self):
        self.assertEqual(
            rtds.Parameters(20_000, 12_000, False),
            rtds.Parameters.of(R(12_000, 20_000)),
        )
        self.assertEqual(
            rtds.Parameters(5_000, 3_000, True),
            rtds.Parameters.of(
                R(12_000, 20_000, WORK_CONSERVING, granularity=4)
            ),
        )

    def test_parts_are_whole_microseconds(self):
        problem = self.assertRaises(
            ValueError, rtds.Parameters.of, R(12_001, 20_000, granularity=2)
        )
        self.assertIn('12001 us', str(problem))

    def test_what_xen_refuses(self):
        problem = self.assertRaises(
            ValueError, rtds.Parameters.of, R(9, 20_000)
        )
        self.assertIn('9 us in a period of 20000 us', str(problem))
        rtds.Parameters.of(R(10, 20_000))

    def test_what_others_have_set_is_taken_as_it_is(self):
        self.assertEqual(
            Fraction(1), rtds.Parameters(10_000, 30_000, False).utilisation
        )
        self.assertEqual(
            Fraction(1, 60_000_000),
            rtds.Parameters(60_000_000, 1, False).utilisation,
        )

    @hypothesis.given(
        strategies.reservations(period_us_min=100, runtime_us_min=10)
    )
    def test_nothing_is_rounded(self, one):
        if one.problems(reservation.Backend.RTDS):
            return
        try:
            found = rtds.Parameters.of(one)
        except ValueError:
            self.assertGreater(one.granularity, 1)
            return
        self.assertEqual(one.utilisation, found.utilisation)
        self.assertEqual(one.mode, found.mode)


class AdmissibleTestCase(base.BaseTestCase):
    def test_others_have_their_budgets(self):
        self.assertEqual(2, rtds.admissible(2, ()))
        self.assertEqual(
            Fraction(6, 5), rtds.admissible(2, (rtds.DEFAULT,) * 2)
        )

    def test_never_negative(self):
        self.assertEqual(0, rtds.admissible(1, (rtds.DEFAULT,) * 3))

    @hypothesis.given(
        st.integers(1, 512),
        st.lists(
            st.integers(10, 100_000).flatmap(
                lambda period_us: st.builds(
                    rtds.Parameters,
                    st.just(period_us),
                    st.integers(10, period_us),
                    st.booleans(),
                )
            )
        ),
    )
    def test_the_sum_is_exact(self, cpus, others):
        left = rtds.admissible(cpus, others)
        taken = sum((one.utilisation for one in others), Fraction(0))
        self.assertEqual(max(cpus, taken), left + taken)


class RestorableTestCase(base.BaseTestCase):
    def test_the_smallest_change_first(self):
        present = {
            'a': rtds.Parameters(10_000, 1_000, False),
            'b': rtds.Parameters(10_000, 1_000, False),
            'c': rtds.Parameters(10_000, 9_000, False),
            'other': rtds.Parameters(10_000, 6_000, True),
        }
        former = {
            'a': rtds.Parameters(10_000, 9_000, True),
            'b': rtds.Parameters(10_000, 3_000, True),
            'c': rtds.Parameters(10_000, 8_000, True),
        }
        self.assertEqual(
            (['c', 'b'], Fraction(2, 10)), rtds.restorable(2, present, former)
        )
        self.assertEqual(
            (['c', 'b', 'a'], Fraction(4, 10)),
            rtds.restorable(3, present, former),
        )
        self.assertEqual(
            (['c'], Fraction(0)), rtds.restorable(1, present, former)
        )

    @hypothesis.given(
        st.integers(1, 4),
        st.lists(
            st.tuples(st.integers(1, 10), st.integers(1, 10)), max_size=8
        ),
    )
    def test_the_sum_grows_to_the_cpus_at_most(self, cpus, pairs):
        present, former = (
            {
                key: rtds.Parameters(10, pair[which], False)
                for key, pair in enumerate(pairs)
            }
            for which in (0, 1)
        )
        fitting, left = rtds.restorable(cpus, present, former)
        before, after = (
            sum(one.utilisation for one in values.values())
            for values in (
                present,
                present | {key: former[key] for key in fitting},
            )
        )
        self.assertLessEqual(after, max(cpus, before))
        self.assertEqual(max(0, cpus - after), left)
        # No other one fits.
        for key in former.keys() - set(fitting):
            change = former[key].utilisation - present[key].utilisation
            self.assertGreater(change, left)


class CautionsTestCase(base.BaseTestCase):
    def test_none(self):
        for one in (
            R(12_000, 20_000),
            R(1_000, 10_000),
            # A guest that gets idle time does not stall on an idle host.
            R(500, 10_000, WORK_CONSERVING),
        ):
            self.assertEqual([], rtds.cautions(one), one)

    def test_each_floor_is_named(self):
        for one, words in (
            (R(500, 10_000), ('500 us in 10000 us', '1000 us', '10 %')),
            (R(900, 1_800), ('900 us in 1800 us', '1000 us')),
            (R(9_000, 100_000), ('9000 us in 100000 us', '10 %')),
            (R(500, 900, WORK_CONSERVING), ('a period of 900 us', '1000')),
        ):
            (found,) = rtds.cautions(one)
            for word in words:
                self.assertIn(word, found)
        self.assertEqual(2, len(rtds.cautions(R(100, 900))))
