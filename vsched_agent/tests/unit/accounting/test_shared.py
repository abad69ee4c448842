# SPDX-License-Identifier: Apache-2.0

"""What instances are given of the host's work."""

import hypothesis
from hypothesis import strategies
from oslotest import base

from vsched_agent.accounting import shared
from vsched_lib.contract import messages


def sample(rx, tx=0):
    return messages.UsageSample(
        'u', 1.0, 1_000_000, 0, 0, net_rx_packets=rx, net_tx_packets=tx
    )


class TestShares(base.BaseTestCase):
    def test_what_is_paid_already_is_not_counted(self):
        self.assertEqual(60, shared.estimate_us(sample(10, 99), False))
        self.assertEqual(120, shared.estimate_us(sample(10, 10), True))

    def test_each_by_its_packets(self):
        self.assertEqual(
            [600, 0, 60],
            shared.shares_us(
                [sample(100), sample(0, 50), sample(10)], 10**6, False
            ),
        )
        self.assertEqual(
            [50, 150], shared.shares_us([sample(100), sample(300)], 200, False)
        )
        self.assertEqual([], shared.shares_us([], 10, True))

    @hypothesis.given(
        strategies.lists(
            strategies.tuples(
                strategies.integers(0, 10**7), strategies.integers(0, 10**7)
            ),
            max_size=20,
        ),
        strategies.integers(0, 10**9),
        strategies.booleans(),
    )
    def test_never_more_than_there_is(self, packets, most_us, irq_time):
        found = shared.shares_us(
            [sample(*one) for one in packets], most_us, irq_time
        )
        self.assertLessEqual(sum(found), most_us)
        self.assertTrue(all(one >= 0 for one in found))
