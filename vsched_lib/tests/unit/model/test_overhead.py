# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import hypothesis
from hypothesis import strategies
from oslotest import base

from vsched_lib.model import overhead

PRICES = {
    'net_rx': 24_500.0,
    'net_tx': 60_000.0,
    'disk_read': 95_000.0,
    'disk_write': 110_000.0,
    'wakeups': 30_000.0,
    'idle_s': 2_000_000.0,
}


def observe(source, prices=PRICES, noise=0.0, **fixed):
    counts = {
        term: fixed.get(term, float(source.randint(0, 2000)))
        for term in overhead.TERMS
    }
    counts['idle_s'] = 1.0
    cost = sum(price * counts[term] for term, price in prices.items())
    return overhead.Observation(counts, cost * (1 + source.gauss(0, noise)))


class TestFit(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.source = random.Random(7)

    def test_what_is_linear_is_found(self):
        found = overhead.fit([observe(self.source) for _ in range(40)])
        for term, cost_ns in PRICES.items():
            self.assertAlmostEqual(
                1, found.prices[term].cost_ns / cost_ns, 4, term
            )
        self.assertTrue(found.good)
        self.assertAlmostEqual(1, found.r2, 6)

    def test_noise_shows_in_the_standard_errors(self):
        found = overhead.fit(
            [observe(self.source, noise=0.02) for _ in range(200)]
        )
        for term in overhead.EVENTS:
            price = found.prices[term]
            self.assertLess(
                abs(price.cost_ns - PRICES[term]), 4 * price.error_ns
            )
            self.assertLess(price.error_ns, 0.2 * PRICES[term])
        self.assertTrue(0.9 < found.r2 < 1)
        self.assertGreater(found.residual_ns, 0)

    def test_cheap_observations_count_as_much_as_dear_ones(self):
        # What a packet costs falls with their rate: no price fits all.
        seen = [
            overhead.Observation({'net_rx': packets}, cost)
            for packets, cost in (
                (10, 400),
                (20, 800),
                (30, 1200),
                (10_000, 200_000),
            )
        ]
        alike = overhead.fit(seen, ('net_rx',))
        even = overhead.fit(seen, ('net_rx',), 0.001)
        self.assertAlmostEqual(20, alike.prices['net_rx'].cost_ns, 2)
        self.assertGreater(even.prices['net_rx'].cost_ns, 25)
        self.assertLess(even.r2, alike.r2)
        self.assertLess(alike.residual_ns, even.residual_ns)

    def test_what_is_linear_is_found_evenly_too(self):
        found = overhead.fit(
            [observe(self.source) for _ in range(40)], floor=0.3
        )
        for term, cost_ns in PRICES.items():
            self.assertAlmostEqual(
                1, found.prices[term].cost_ns / cost_ns, 4, term
            )
        self.assertAlmostEqual(1, found.r2, 6)

    def test_batched_traffic_needs_the_wakeups(self):
        seen = []
        for _ in range(60):
            packets = self.source.randint(100, 5000)
            batch = self.source.choice((1, 4, 32))
            seen.append(
                overhead.Observation(
                    {'net_tx': packets, 'wakeups': packets / batch},
                    1_000 * packets + 120_000 * packets / batch,
                )
            )
        both = overhead.fit(seen, ('net_tx', 'wakeups'))
        alone = overhead.fit(seen, ('net_tx',))
        self.assertAlmostEqual(1, both.r2, 6)
        self.assertAlmostEqual(120_000, both.prices['wakeups'].cost_ns, 0)
        self.assertFalse(alone.good)

    def test_no_price_is_below_zero(self):
        seen = [
            overhead.Observation(
                {'net_rx': 1.0 * n, 'net_tx': 5.0}, 100.0 * n - 300
            )
            for n in range(3, 20)
        ]
        found = overhead.fit(seen, ('net_rx', 'net_tx'))
        self.assertEqual(0, found.prices['net_tx'].cost_ns)
        self.assertGreater(found.prices['net_rx'].cost_ns, 0)

    def test_terms_that_always_come_together(self):
        seen = [
            overhead.Observation({'net_rx': n, 'wakeups': n}, 50.0 * n)
            for n in range(1, 20)
        ]
        found = overhead.fit(seen, ('net_rx', 'wakeups'))
        self.assertAlmostEqual(
            500, found.predict_ns({'net_rx': 10, 'wakeups': 10}), 3
        )

    def test_what_never_occurs_costs_nothing_known(self):
        found = overhead.fit(
            [overhead.Observation({'net_rx': n}, 7.0 * n) for n in range(1, 9)]
        )
        self.assertEqual(
            (0, math.inf),
            (
                found.prices['disk_read'].cost_ns,
                found.prices['disk_read'].error_ns,
            ),
        )

    def test_a_poor_fit_says_so(self):
        found = overhead.fit(
            [observe(self.source, noise=2.0) for _ in range(60)]
        )
        self.assertFalse(found.good)
        # As many unknowns as observations explain anything.
        self.assertFalse(
            overhead.fit([observe(self.source) for _ in range(5)]).good
        )
        self.assertRaises(ValueError, overhead.fit, [])

    @hypothesis.settings(max_examples=60, deadline=None)
    @hypothesis.given(
        strategies.lists(
            strategies.tuples(
                strategies.floats(0, 1e5),
                strategies.floats(0, 1e5),
                strategies.floats(0, 1e9),
            ),
            min_size=3,
            max_size=30,
        )
    )
    def test_it_is_the_best_of_what_is_not_negative(self, rows):
        seen = [
            overhead.Observation({'a': a, 'b': b}, cost) for a, b, cost in rows
        ]
        found = overhead.fit(seen, ('a', 'b'))
        prices = [found.prices[term].cost_ns for term in ('a', 'b')]
        self.assertTrue(all(price >= 0 for price in prices))

        def loss(a, b):
            return math.fsum(
                (cost - a * x - b * y) ** 2 for x, y, cost in rows
            )

        best = loss(*prices)
        for factors in ((1.01, 1), (0.99, 1), (1, 1.01), (1, 0.99)):
            self.assertLessEqual(
                best,
                loss(prices[0] * factors[0], prices[1] * factors[1])
                * (1 + 1e-6)
                + 1e-3,
            )


class TestRefinement(base.BaseTestCase):
    def test_it_follows_a_host_that_has_changed(self):
        source = random.Random(3)
        start = overhead.fit([observe(source) for _ in range(40)])
        refined = overhead.Refinement(start, forgetting=0.98)
        doubled = {term: 2 * price for term, price in PRICES.items()}
        surprises = [
            refined.observe(observe(source, doubled, 0.01)) for _ in range(400)
        ]
        self.assertLess(
            abs(sum(surprises[-50:])), 0.1 * abs(sum(surprises[:50]))
        )
        for term in overhead.EVENTS:
            self.assertAlmostEqual(
                2, refined.prices_ns[term] / PRICES[term], delta=0.2
            )

    def test_what_agrees_changes_nothing(self):
        source = random.Random(3)
        start = overhead.fit([observe(source) for _ in range(40)])
        refined = overhead.Refinement(start)
        for _ in range(100):
            refined.observe(observe(source))
        for term, price in PRICES.items():
            self.assertAlmostEqual(1, refined.prices_ns[term] / price, 2, term)

    def test_prices_stay_above_zero(self):
        source = random.Random(3)
        refined = overhead.Refinement(
            overhead.fit([observe(source) for _ in range(40)]), 0.9
        )
        for _ in range(100):
            refined.observe(overhead.Observation(observe(source).counts, 0.0))
            self.assertTrue(
                all(price >= 0 for price in refined.prices_ns.values())
            )

    def test_nothing_counted_is_no_lesson(self):
        source = random.Random(3)
        refined = overhead.Refinement(
            overhead.fit([observe(source) for _ in range(40)])
        )
        before = refined.prices_ns
        self.assertEqual(5.0, refined.observe(overhead.Observation({}, 5.0)))
        self.assertEqual(before, refined.prices_ns)

    def test_forgetting_is_a_part(self):
        start = overhead.fit([overhead.Observation({'net_rx': 1}, 1)])
        for wrong in (0, -1, 1.1):
            self.assertRaises(ValueError, overhead.Refinement, start, wrong)


class TestDemand(base.BaseTestCase):
    PRICES = overhead.fit(
        [
            overhead.Observation(
                {'net_tx': n, 'wakeups': w}, 50_000.0 * n + 70_000.0 * w
            )
            for n in range(1, 20)
            for w in (1, 5, 9)
        ]
    )

    def cost_mcpu(self, rates, wakeups_per_event=1.0):
        return overhead.cost_mcpu(
            dataclasses.astuple(rates), self.PRICES.tariff(wakeups_per_event)
        )

    def test_unbatched_is_the_worst_case(self):
        rates = overhead.Rates(net_tx_pps=1000)
        self.assertEqual(120, self.cost_mcpu(rates))
        self.assertEqual(57, self.cost_mcpu(rates, 0.1))
        self.assertEqual(0, self.cost_mcpu(overhead.Rates()))

    def test_charged_it_comes_out_of_the_reservation(self):
        self.assertEqual(300, overhead.total_mcpu(300, 120, True))
        self.assertEqual(420, overhead.total_mcpu(300, 120, False))
        # More than the reservation has is not to be had from it.
        self.assertEqual(900, overhead.total_mcpu(300, 900, True))
