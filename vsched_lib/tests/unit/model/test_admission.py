# SPDX-License-Identifier: Apache-2.0

"""Does it fit: figures known by hand, and what must hold for any."""

from fractions import Fraction

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import admission
from vsched_lib.model import host
from vsched_lib.model import reservation
from vsched_lib.tests import strategies

TESTS = st.sampled_from(admission.Test)


def claim(runtime_us, period_us, *pins):
    return admission.Claim(
        reservation.Reservation(runtime_us, period_us), pins or (None,)
    )


class KnownTestCase(base.BaseTestCase):
    capacity = host.Capacity(2, Fraction(9, 5))

    def test_nothing_fits_anywhere(self):
        for test in admission.Test:
            self.assertTrue(
                admission.admit((), host.Capacity(1, Fraction(0)), test).fits
            )

    def test_bandwidth_to_the_brim(self):
        three = [claim(12, 20)] * 3
        verdict = admission.admit(three, self.capacity)
        self.assertTrue(verdict.fits)
        self.assertEqual(
            (1800, 1800), (verdict.needed_mcpu, verdict.bound_mcpu)
        )
        over = admission.admit([*three, claim(1, 1_000_000)], self.capacity)
        self.assertFalse(over.fits)
        self.assertEqual(1801, over.needed_mcpu)
        self.assertEqual(
            'bandwidth: 1801 mcpu needed exceed 1800 mcpu allowed', over.reason
        )

    def test_gfb_charges_the_heaviest(self):
        # m = 2, heaviest 0.6: 1.8 - 0.6 = 1.2 allowed.
        two = [claim(12, 20)] * 2
        fits = admission.admit(two, self.capacity, admission.Test.GFB)
        self.assertTrue(fits.fits)
        self.assertEqual(1200, fits.bound_mcpu)
        self.assertFalse(
            admission.admit(
                [*two, claim(1, 20)], self.capacity, admission.Test.GFB
            ).fits
        )

    def test_gfb_on_whole_cpus(self):
        self.assertTrue(admission.gfb([Fraction(1, 2)] * 3, 2).fits)
        self.assertFalse(
            admission.gfb([Fraction(1, 2)] * 3 + [Fraction(1, 99)], 2).fits
        )

    def test_gfb_of_one_cpu_is_bandwidth(self):
        shares = [Fraction(1, 3)] * 3
        self.assertTrue(admission.gfb(shares, 1).fits)
        self.assertFalse(admission.gfb(shares, 1, Fraction(99, 100)).fits)

    def test_gfb_never_allows_less_than_nothing(self):
        verdict = admission.gfb([Fraction(1)], 8, Fraction(1))
        self.assertFalse(verdict.fits)
        self.assertEqual(0, verdict.bound)

    def test_pinned_names_the_full_cpu(self):
        verdict = admission.admit(
            [claim(12, 20, 0), claim(12, 20, 1), claim(8, 20, 1)],
            self.capacity,
        )
        self.assertFalse(verdict.fits)
        self.assertEqual(admission.Test.PARTITIONED, verdict.test)
        self.assertEqual(1, verdict.cpu)
        self.assertEqual(
            'partitioned: 1000 mcpu needed on CPU 1 exceed 900 mcpu allowed',
            verdict.reason,
        )

    def test_pinned_and_free_share_the_host(self):
        claims = [claim(18, 20, 0), claim(18, 20, 1)]
        self.assertTrue(admission.admit(claims, self.capacity).fits)
        verdict = admission.admit([*claims, claim(1, 20)], self.capacity)
        self.assertFalse(verdict.fits)
        self.assertEqual(admission.Test.BANDWIDTH, verdict.test)

    def test_partitioned_looks_at_the_pinned_only(self):
        self.assertTrue(
            admission.admit(
                [claim(20, 20)] * 9, self.capacity, admission.Test.PARTITIONED
            ).fits
        )

    def test_generators_are_read_once(self):
        self.assertTrue(
            admission.admit(
                (claim(1, 20) for _ in range(3)),
                self.capacity,
                admission.Test.GFB,
            ).fits
        )
        self.assertEqual(
            Fraction(1),
            admission.gfb((Fraction(1, 2) for _ in range(2)), 4).needed,
        )


class AnySetTestCase(base.BaseTestCase):
    @hypothesis.given(st.data(), strategies.capacities(), TESTS)
    def test_one_more_never_helps(self, data, capacity, test):
        claims = data.draw(
            st.lists(strategies.claims(capacity.cpus), min_size=1, max_size=6)
        )
        if admission.admit(claims, capacity, test).fits:
            without = data.draw(st.integers(0, len(claims) - 1))
            fewer = claims[:without] + claims[without + 1 :]
            self.assertTrue(admission.admit(fewer, capacity, test).fits)

    @hypothesis.given(st.data(), strategies.capacities(), TESTS)
    def test_a_larger_host_never_hurts(self, data, capacity, test):
        claims = data.draw(
            st.lists(strategies.claims(capacity.cpus), max_size=6)
        )
        larger = host.Capacity(capacity.cpus, Fraction(capacity.cpus), 0)
        if admission.admit(claims, capacity, test).fits:
            self.assertTrue(admission.admit(claims, larger, test).fits)

    @hypothesis.given(st.data(), strategies.capacities(), TESTS)
    def test_order_does_not_matter(self, data, capacity, test):
        claims = data.draw(
            st.lists(strategies.claims(capacity.cpus), max_size=6)
        )
        other = data.draw(st.permutations(claims))
        first = admission.admit(claims, capacity, test)
        second = admission.admit(other, capacity, test)
        self.assertEqual(
            (first.fits, first.test, first.needed, first.bound),
            (second.fits, second.test, second.needed, second.bound),
        )

    @hypothesis.given(
        st.lists(strategies.UTILISATIONS, max_size=8),
        st.integers(1, 8),
        st.integers(0, 1000),
    )
    def test_gfb_admits_no_more_than_bandwidth(
        self, utilisations, cpus, promille
    ):
        bound = Fraction(cpus * promille, 1000)
        if admission.gfb(utilisations, cpus, bound).fits:
            self.assertTrue(admission.bandwidth(utilisations, bound).fits)
            self.assertLessEqual(
                max(utilisations, default=0), Fraction(promille, 1000)
            )

    @hypothesis.given(st.data(), strategies.capacities())
    def test_fully_pinned_within_each_cpu_fits_the_host(self, data, capacity):
        claims = data.draw(
            st.lists(
                st.builds(
                    admission.Claim,
                    strategies.reservations(),
                    st.lists(
                        st.integers(0, capacity.cpus - 1),
                        min_size=1,
                        max_size=3,
                    ).map(tuple),
                ),
                max_size=6,
            )
        )
        per_cpu = {}
        for one in claims:
            for pin in one.pins:
                per_cpu.setdefault(pin, []).append(one.reservation.utilisation)
        verdict = admission.partitioned(per_cpu, capacity.per_cpu_bound)
        self.assertEqual(
            verdict.fits,
            all(
                sum(shares) <= capacity.per_cpu_bound
                for shares in per_cpu.values()
            ),
        )
        # Every CPU within its share: so is their sum.
        self.assertEqual(verdict.fits, admission.admit(claims, capacity).fits)
        if not verdict.fits:
            self.assertEqual(verdict.needed, sum(per_cpu[verdict.cpu]))

    @hypothesis.given(st.data(), strategies.capacities(), TESTS)
    def test_rounded_figures_agree_with_the_verdict(
        self, data, capacity, test
    ):
        claims = data.draw(
            st.lists(strategies.claims(capacity.cpus), max_size=6)
        )
        verdict = admission.admit(claims, capacity, test)
        if verdict.needed_mcpu <= verdict.bound_mcpu:
            self.assertTrue(verdict.fits)
        self.assertGreaterEqual(verdict.needed_mcpu, verdict.needed * 1000)
        self.assertLessEqual(verdict.bound_mcpu, verdict.bound * 1000)

    @hypothesis.given(st.data(), strategies.capacities())
    def test_admitted_is_within_the_kernels_sum(self, data, capacity):
        claims = data.draw(
            st.lists(strategies.claims(capacity.cpus), max_size=6)
        )
        if admission.admit(claims, capacity).fits:
            kernel = sum(
                reservation.kernel_bandwidth(
                    one.reservation.runtime_us * 1000,
                    one.reservation.period_us * 1000,
                )
                * len(one.pins)
                for one in claims
            )
            self.assertLessEqual(
                kernel,
                capacity.admissible * (1 << reservation.KERNEL_BW_SHIFT),
            )
