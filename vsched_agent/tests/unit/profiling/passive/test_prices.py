# SPDX-License-Identifier: Apache-2.0

"""Prices follow what instances use."""

import dataclasses

from oslotest import base

from vsched_agent.profiling.passive import prices
from vsched_agent.tests import profiles
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract
from vsched_lib.tests import overhead_profiles

PROFILE = overhead_profiles.profile()


def sample(packets, us_each, interval_us=1_000_000):
    return messages.UsageSample(
        '11111111-2222-4333-8444-555555555555',
        1.0,
        interval_us,
        0,
        0,
        wakeups=packets,
        net_rx_packets=packets,
        direct_us=4000 + packets * us_each,
    )


class LivePricesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.live = prices.LivePrices(4)

    def profile(self):
        return self.live.profile(2, profiles.FACTS)

    def test_nothing_without_a_beginning(self):
        self.live.look([sample(10, 30)])
        self.assertIsNone(self.profile())
        self.live.follow(PROFILE)
        self.assertIsNone(self.profile())

    def test_what_costs_more_gets_dearer(self):
        self.live.follow(PROFILE)
        for number in range(400):
            self.live.look([sample(100 + number % 7 * 150, 64)])
        found = self.profile()
        self.assertEqual(
            (contract.ProfileSource.LIVE, 2, 400, True),
            (found.source, found.version, found.n, found.complete),
        )
        price = found.fit.prices
        self.assertAlmostEqual(
            64_000,
            price['net_rx'].cost_ns + price['wakeups'].cost_ns,
            delta=2_000,
        )
        self.assertEqual(40_000, price['disk_read'].cost_ns)
        self.assertEqual(profiles.FACTS['kernel'], found.kernel)

    def test_what_it_explains(self):
        self.live.follow(PROFILE)
        for number in range(50):
            self.live.look([sample(100 + number % 7 * 150, 32)])
        self.assertGreater(self.profile().r2, 0.99)
        self.assertTrue(self.profile().good)

    def test_a_few_instances_in_each_pass(self):
        self.live.follow(PROFILE)
        self.live.look([sample(10, 30)] * 10)
        self.assertEqual(4, self.profile().n)

    def test_intervals_that_are_none(self):
        self.live.follow(PROFILE)
        self.live.look(
            [
                sample(10, 30, interval_us)
                for interval_us in (100_000, 3_000_000)
            ]
        )
        self.assertIsNone(self.profile())

    def test_another_beginning(self):
        self.live.follow(PROFILE)
        self.live.look([sample(10, 30)])
        self.live.follow(PROFILE)
        self.assertIsNotNone(self.profile())
        self.live.follow(dataclasses.replace(PROFILE, version=4))
        self.assertIsNone(self.profile())
        self.live.follow(None)
        self.live.look([sample(10, 30)])
        self.assertIsNone(self.profile())
