# SPDX-License-Identifier: Apache-2.0

"""Whether a host can provide a reservation, and why not."""

import dataclasses
from fractions import Fraction
import math

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.contract import extra_specs
from vsched_lib.model import admission
from vsched_lib.model import certificates
from vsched_lib.model import error
from vsched_lib.model import fit
from vsched_lib.model import overhead
from vsched_lib.model import reservation
from vsched_lib.model import room
from vsched_lib.tests import strategies

BOTH = frozenset({'deadline', 'cfs'})
RESERVED = reservation.Reservation(5_000, 20_000)
RATES = overhead.Rates(net_rx_pps=10_000)


def certificate(lower_ppm, share_ppm=250_000):
    """Of one share."""
    return certificates.Certificate((share_ppm,), (lower_ppm,))


def prices(net_rx_ns):
    """A host's prices."""
    return overhead.Fit(
        {'net_rx': overhead.Price(net_rx_ns, 1.0)}, 0.99, 0.0, 100
    )


def make(**changes):
    """A host of two CPUs."""
    return fit.Host(
        **{
            'cpus': 2,
            'tick_us': 4_000,
            'capacity_mcpu': 1_900,
            'backends': BOTH,
            **changes,
        }
    )


def causes(problems):
    return [one.cause for one in problems]


class TestNeed(base.BaseTestCase):
    """What a flavor takes of a host."""

    def test_nothing_asked_nothing_taken(self):
        self.assertEqual(
            fit.Need(overhead_mcpu=0), fit.need(fit.Ask(2), make())
        )

    def test_the_bandwidth(self):
        found = fit.need(fit.Ask(2, RESERVED), make())
        self.assertEqual(
            ('deadline', 500, 500, 0, ()),
            (
                found.backend,
                found.guest_mcpu,
                found.demand_mcpu,
                found.margin_ppm,
                found.problems,
            ),
        )

    def test_cfs_takes_none_of_the_capacity(self):
        found = fit.need(
            fit.Ask(
                2,
                dataclasses.replace(RESERVED, backend=reservation.Backend.CFS),
            ),
            make(),
        )
        self.assertEqual(
            (500, 0, ()), (found.guest_mcpu, found.demand_mcpu, found.problems)
        )

    def test_no_backend(self):
        (problem,) = fit.need(
            fit.Ask(1, RESERVED), make(backends=frozenset({'cfs'}))
        ).problems
        self.assertEqual(
            (
                fit.Cause.BACKEND,
                'needs backend deadline or rtds; the host can use cfs',
            ),
            (problem.cause, problem.detail),
        )

    def test_what_a_backend_cannot_express(self):
        tiny = reservation.Reservation(10, 20_000)
        (problem,) = fit.need(fit.Ask(1, tiny), make()).problems
        self.assertEqual(fit.Cause.RESERVATION, problem.cause)
        self.assertIn('could owe', problem.detail)

    def test_a_margin_for_measured_errors(self):
        ask = fit.Ask(2, RESERVED, bound_ppm=20_000)
        found = fit.need(
            ask, make(certified={('deadline', 20_000): certificate(-100_000)})
        )
        margin_ppm = error.margin_ppm(-100_000, 20_000)
        self.assertEqual((), found.problems)
        self.assertEqual(-100_000, found.error_ppm)
        self.assertEqual(margin_ppm, found.margin_ppm)
        runtime_us = error.inflated_us(5_000, 20_000, margin_ppm)
        self.assertEqual(
            math.ceil(2_000 * Fraction(runtime_us, 20_000)), found.demand_mcpu
        )

    def test_an_error_that_no_margin_makes_up_for(self):
        ask = fit.Ask(1, RESERVED, bound_ppm=20_000)
        for lower_ppm in (-300_000, -1_000_000):
            (problem,) = fit.need(
                ask,
                make(certified={('deadline', 20_000): certificate(lower_ppm)}),
            ).problems
            self.assertEqual(
                (fit.Cause.ERROR, False), (problem.cause, problem.unknown)
            )
            self.assertIn('2 % may be missing', problem.detail)
        # The budget would be longer than the period.
        whole = fit.Ask(
            1, reservation.Reservation(20_000, 20_000), bound_ppm=20_000
        )
        self.assertEqual(
            [fit.Cause.ERROR],
            causes(
                fit.need(
                    whole,
                    make(
                        certified={
                            ('deadline', 20_000): certificate(
                                -100_000, 1_000_000
                            )
                        }
                    ),
                ).problems
            ),
        )

    def test_an_error_that_nobody_measured(self):
        ask = fit.Ask(1, RESERVED, bound_ppm=20_000)
        for known, words in (
            ({}, 'not measured under contention'),
            ({('deadline', 10_000): certificate(0)}, 'not measured'),
            ({('deadline', 20_000): certificate(None)}, 'too few'),
            ({('deadline', 20_000): certificate(0, 500_000)}, 'too few'),
        ):
            (problem,) = fit.need(ask, make(certified=known)).problems
            self.assertEqual(
                (fit.Cause.ERROR, True), (problem.cause, problem.unknown)
            )
            self.assertIn(words, problem.detail)

    def test_overhead_on_top_or_out_of_it(self):
        known = make(prices=prices(10_000.0))
        on_top = fit.need(
            fit.Ask(1, RESERVED, rates=RATES, charged=False), known
        )
        self.assertEqual(
            (250, 100, 350),
            (on_top.guest_mcpu, on_top.overhead_mcpu, on_top.demand_mcpu),
        )
        charged = fit.need(
            fit.Ask(1, RESERVED, rates=RATES, charged=True), known
        )
        self.assertEqual(
            (100, 250), (charged.overhead_mcpu, charged.demand_mcpu)
        )
        left_out = fit.need(fit.Ask(1, RESERVED, rates=RATES), known)
        self.assertEqual(
            (100, 250), (left_out.overhead_mcpu, left_out.demand_mcpu)
        )

    def test_overhead_that_leaves_the_guest_too_little(self):
        ask = fit.Ask(1, RESERVED, rates=RATES, charged=True)
        self.assertEqual(
            (), fit.need(ask, make(prices=prices(12_500.0))).problems
        )
        (problem,) = fit.need(ask, make(prices=prices(12_600.0))).problems
        self.assertEqual(
            (fit.Cause.OVERHEAD, False), (problem.cause, problem.unknown)
        )
        self.assertIn('126 of its 250 mcpu', problem.detail)

    def test_overhead_that_nobody_measured(self):
        for charged in (True, False):
            (problem,) = fit.need(
                fit.Ask(1, RESERVED, rates=RATES, charged=charged), make()
            ).problems
            self.assertEqual(
                (fit.Cause.OVERHEAD, True), (problem.cause, problem.unknown)
            )
        self.assertEqual(
            (), fit.need(fit.Ask(1, RESERVED, rates=RATES), make()).problems
        )

    def test_what_a_flavor_says(self):
        found = extra_specs.parse(
            {
                'vsched:cpu_runtime_us': '5000',
                'vsched:net_rx_pps': '10000',
                'vsched:io_charging': 'overprovision',
                'vsched:max_alloc_error_pct': '2.5',
                'vsched:workload_class': 'web',
            }
        ).ask(2)
        self.assertEqual(
            fit.Ask(2, RESERVED, 25_000, RATES, False, 'web'), found
        )
        self.assertEqual(fit.Ask(3), extra_specs.parse({}).ask(3))


class TestVerdict(base.BaseTestCase):
    """Whether what is left suffices."""

    def test_figures_in_the_reason(self):
        verdict = room.judge(fit.Ask(2, RESERVED), make(), 1_500)
        (problem,) = verdict.problems
        self.assertEqual(
            (
                False,
                fit.Cause.CAPACITY,
                '500 mcpu needed, 400 of 1900 mcpu free',
            ),
            (verdict.fits, problem.cause, problem.detail),
        )

    def test_several_instances(self):
        ask = fit.Ask(2, RESERVED)
        self.assertTrue(room.judge(ask, make(), 400, 3).fits)
        self.assertFalse(room.judge(ask, make(), 401, 3).fits)
        self.assertEqual(2, room.judge(ask, make(), 401).room)

    def test_what_takes_nothing_fits_everywhere(self):
        verdict = room.judge(fit.Ask(2), make(), 5_000)
        self.assertEqual((True, None), (verdict.fits, verdict.room))

    def test_room_where_something_else_is_wrong(self):
        verdict = room.judge(
            fit.Ask(1, RESERVED), make(backends=frozenset()), 0
        )
        self.assertEqual((False, 0), (verdict.fits, verdict.room))

    @given(
        st.lists(
            strategies.reservations(backends=st.none()), min_size=1, max_size=4
        ),
        strategies.reservations(backends=st.none()),
        st.integers(1, 4),
        strategies.capacities(),
    )
    def test_never_more_generous_than_admission(
        self, held, reserved, vcpus, capacity
    ):
        claims = [admission.Claim(one, (None,)) for one in held]
        admitted_mcpu = math.ceil(
            1000 * sum((one.utilisation for one in held), Fraction(0))
        )
        known = make(
            cpus=capacity.cpus, tick_us=0, capacity_mcpu=capacity.capacity_mcpu
        )
        verdict = room.judge(fit.Ask(vcpus, reserved), known, admitted_mcpu)
        if verdict.fits and verdict.need.demand_mcpu:
            self.assertTrue(
                admission.admit(
                    [*claims, admission.Claim(reserved, (None,) * vcpus)],
                    capacity,
                ).fits
            )

    @given(
        strategies.reservations(backends=st.none()),
        st.integers(1, 8),
        st.integers(0, 8_000),
        st.integers(0, 8_000),
    )
    def test_exactly_as_many_fit_as_there_is_room_for(
        self, reserved, vcpus, capacity_mcpu, admitted_mcpu
    ):
        known = make(capacity_mcpu=capacity_mcpu)
        ask = fit.Ask(vcpus, reserved)
        most = room.judge(ask, known, admitted_mcpu).room
        if most:
            self.assertTrue(room.judge(ask, known, admitted_mcpu, most).fits)
        if most is not None:
            self.assertFalse(
                room.judge(ask, known, admitted_mcpu, most + 1).fits
            )

    @given(
        st.integers(-900_000, 0),
        st.integers(-900_000, 0),
        st.integers(1_000, 200_000),
    )
    def test_a_worse_host_never_takes_less(
        self, one_ppm, other_ppm, bound_ppm
    ):
        worse_ppm, better_ppm = sorted((one_ppm, other_ppm))
        ask = fit.Ask(1, RESERVED, bound_ppm=bound_ppm)
        worse, better = (
            fit.need(
                ask,
                make(certified={('deadline', 20_000): certificate(lower_ppm)}),
            )
            for lower_ppm in (worse_ppm, better_ppm)
        )
        if not worse.problems:
            self.assertEqual((), better.problems)
            self.assertLessEqual(better.demand_mcpu, worse.demand_mcpu)
