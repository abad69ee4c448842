# SPDX-License-Identifier: Apache-2.0

"""The time of Xen's first domain, divided."""

import random

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import first_domain
from vsched_lib.model import overhead

Work = first_domain.Work
PRICES_NS = {
    'net_rx': 4_000.0,
    'net_tx': 9_000.0,
    'disk_read': 30_000.0,
    'disk_write': 50_000.0,
}
counts = st.dictionaries(
    st.sampled_from(overhead.EVENTS), st.integers(0, 10**7)
)
works = st.lists(st.builds(Work, st.integers(0, 10**9), counts), max_size=12)
prices = st.dictionaries(
    st.sampled_from(overhead.EVENTS), st.floats(0, 1e8, allow_nan=False)
)


class DivideTest(base.BaseTestCase):
    def test_threads_and_priced_counts(self):
        found = first_domain.divide(
            10_000,
            [
                Work(2_000, {'net_rx': 100, 'net_tx': 10}),
                Work(500, {'disk_read': 10, 'disk_write': 1}),
            ],
            PRICES_NS,
        )
        self.assertEqual(((2_000, 490), (500, 350)), found.charges)
        self.assertEqual(10_000 - 2_000 - 490 - 500 - 350, found.own_us)

    def test_without_prices_the_rest_is_its_own(self):
        self.assertEqual(
            (((300, 0),), 700),
            first_domain.divide(1_000, [Work(300, {'net_rx': 9})]),
        )

    def test_without_instances(self):
        self.assertEqual(((), 70), first_domain.divide(70, [], PRICES_NS))

    def test_threads_that_seem_to_have_run_longer(self):
        found = first_domain.divide(
            1_000, [Work(3_000, {'net_rx': 9}), Work(1_000)], PRICES_NS
        )
        self.assertEqual((((750, 0), (250, 0)), 0), found)

    def test_estimates_beyond_what_is_left(self):
        found = first_domain.divide(
            1_000,
            [Work(600, {'net_rx': 300}), Work(0, {'net_rx': 100})],
            PRICES_NS,
        )
        self.assertEqual((((600, 300), (0, 100)), 0), found)

    @hypothesis.given(st.integers(0, 10**10), works, prices)
    def test_the_sum_is_the_total(self, total_us, some, prices_ns):
        charges, own_us = first_domain.divide(total_us, some, prices_ns)
        self.assertEqual(len(some), len(charges))
        self.assertEqual(total_us, sum(map(sum, charges)) + own_us)
        self.assertGreaterEqual(
            min([own_us, *(part for one in charges for part in one)]), 0
        )

    @hypothesis.given(st.integers(0, 10**10), works, prices)
    def test_nobody_is_charged_more_than_counted(self, total_us, some, prices):
        for work, charge in zip(
            some,
            first_domain.divide(total_us, some, prices).charges,
            strict=True,
        ):
            self.assertLessEqual(charge.direct_us, work.direct_us)
            if not any(work.counts.values()):
                self.assertEqual(0, charge.shared_us)

    @hypothesis.given(
        works.filter(bool), prices, st.randoms(use_true_random=False)
    )
    def test_order_does_not_matter(self, some, prices_ns, chance):
        order = list(range(len(some)))
        chance.shuffle(order)
        total_us = sum(work.direct_us for work in some) // 2 + 10**6
        found = first_domain.divide(total_us, some, prices_ns)
        other = first_domain.divide(
            total_us, [some[place] for place in order], prices_ns
        )
        self.assertEqual(
            [found.charges[place] for place in order], list(other.charges)
        )


class PricesTest(base.BaseTestCase):
    def play(self, prices, intervals, own_us=lambda: 20_000, seed=1):
        """Intervals of a first domain whose events cost PRICES_NS."""
        chance = random.Random(seed)
        for _ in range(intervals):
            events = {
                event: chance.choice((0, chance.randint(0, 2_000)))
                for event in overhead.EVENTS
            }
            beside_us = own_us() + int(
                sum(PRICES_NS[event] * events[event] for event in events)
                / 1000
            )
            prices.observe(beside_us + 5_000, 1_000_000, [Work(5_000, events)])

    def test_found_from_loads(self):
        prices = first_domain.Prices()
        self.play(prices, first_domain.LEAST_OBSERVATIONS - 1)
        self.assertEqual({}, prices.prices_ns)
        self.play(prices, 40, seed=2)
        for event, price_ns in PRICES_NS.items():
            self.assertAlmostEqual(
                price_ns, prices.prices_ns[event], delta=0.01 * price_ns
            )

    def test_charges_follow_what_was_caused(self):
        prices = first_domain.Prices()
        self.play(prices, 60)
        (charge,), own_us = first_domain.divide(
            500_000,
            [Work(100_000, {'net_tx': 10_000, 'disk_read': 5_000})],
            prices.prices_ns,
        )
        self.assertAlmostEqual(240_000, charge.shared_us, delta=3_000)
        self.assertEqual(400_000 - charge.shared_us, own_us)

    def test_a_load_of_its_own_is_not_priced(self):
        prices = first_domain.Prices()
        chance = random.Random(7)
        self.play(prices, 100, lambda: chance.choice((0, 900_000)))
        self.assertEqual({}, prices.prices_ns)

    def test_prices_outlive_a_load_of_its_own(self):
        prices = first_domain.Prices()
        self.play(prices, 60)
        before = prices.prices_ns
        chance = random.Random(7)
        self.play(prices, 200, lambda: chance.choice((0, 900_000)))
        self.assertEqual(set(before), set(prices.prices_ns))
        for event, price_ns in PRICES_NS.items():
            self.assertLess(prices.prices_ns[event], 3 * price_ns)

    def test_a_long_interval_counts_as_one(self):
        """The agent was away; meanwhile packets cost less than now."""
        prices = first_domain.Prices()
        chance = random.Random(7)
        prices.observe(
            18_000_000 + 2_000_000, 900_000_000, [Work(0, {'net_rx': 10**6})]
        )
        for _ in range(200):
            packets = chance.randint(0, 2_000)
            prices.observe(
                20_000 + 5 * packets, 1_000_000, [Work(0, {'net_rx': packets})]
            )
        self.assertAlmostEqual(5_000, prices.prices_ns['net_rx'], delta=250)

    def test_rare_events_are_not_priced(self):
        """One packet comes while the first domain starts a domain."""
        prices = first_domain.Prices()
        self.play(prices, 40)
        seen = prices.prices_ns
        for interval in range(200):
            start = interval % 19 == 0
            prices.observe(
                20_000 + 1_900_000 * start,
                1_000_000,
                [Work(0, {'net_rx': int(start)})],
            )
        self.assertEqual(seen, prices.prices_ns)

    def test_processes_of_its_own_are_told_apart(self):
        prices = first_domain.Prices()
        chance = random.Random(7)
        for _ in range(60):
            packets = chance.choice((0, 3_000))
            processes_us = chance.randint(0, 200_000)
            prices.observe(
                10_000 + 7 * packets + 3 * processes_us // 2,
                1_000_000,
                [Work(0, {'net_tx': packets, 'net_rx': packets // 50})],
                processes_us,
            )
        self.assertAlmostEqual(
            7_000,
            prices.prices_ns['net_tx']
            + prices.prices_ns.get('net_rx', 0.0) / 50,
            delta=70,
        )

    def test_an_idle_first_domain_has_no_prices(self):
        prices = first_domain.Prices()
        for _ in range(100):
            prices.observe(20_000, 1_000_000, [Work(0, {})])
        self.assertEqual({}, prices.prices_ns)

    def test_intervals_of_wrong_clocks_are_left_out(self):
        prices = first_domain.Prices()
        for _ in range(100):
            prices.observe(10, 1_000_000, [Work(20, {'net_rx': 5})])
            prices.observe(10, 0, [])
        self.assertEqual({}, prices.prices_ns)

    def test_begin_with_known_ones(self):
        prices = first_domain.Prices(PRICES_NS)
        self.assertEqual(PRICES_NS, prices.prices_ns)
