# SPDX-License-Identifier: Apache-2.0

"""Which host's prices of I/O a flavor claims."""

import contextlib
import io

from oslotest import base

from vsched_api.cmd import flavor
from vsched_lib.contract import bounds
from vsched_lib.contract import extra_specs
from vsched_lib.model import fit
from vsched_lib.model import overhead

_ASK = extra_specs.parse(
    {
        'vsched:cpu_runtime_us': '6000',
        'vsched:io_charging': 'overprovision',
        'vsched:net_rx_pps': '1000',
    }
).ask(1)


class Prices(flavor.Prices):
    """Those of made-up hosts, in nanoseconds a packet."""

    def __init__(self, **prices_ns):
        super().__init__(None)
        self._prices_ns = prices_ns

    def _read(self):
        return {
            name: fit.Host(
                2,
                4000,
                1800,
                frozenset(('deadline',)),
                prices=overhead.Fit(
                    {'net_rx': overhead.Price(price_ns, 0.0)}, 1.0, 0.0, 0
                ),
            )
            for name, price_ns in self._prices_ns.items()
        }


class TestPrices(base.BaseTestCase):
    def claim(self, **prices_ns):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            found = Prices(**prices_ns).of('small')(_ASK)
        return found, err.getvalue()

    def test_the_most_expensive_host(self):
        self.assertEqual((60, ''), self.claim(a=2e4, b=5.5e4, c=3e4))
        self.assertEqual((60, ''), self.claim(a=5.5e4))
        # They differ by what kinds of hosts do.
        self.assertEqual((80, ''), self.claim(a=2e4, b=8e4))

    def test_one_host_does_not_decide_for_all(self):
        """Nobody could hold what all flavors claimed then."""
        for price_ns in (8.1e4, 1e6, bounds.MAX_PRICE_NS):
            claim, said = self.claim(a=2e4, b=2e4, c=3e4, odd=price_ns)
            self.assertEqual(30, claim)
            self.assertIn('small: on 1 hosts I/O costs more than 80', said)
            self.assertIn('without them: odd\n', said)

    def test_prices_that_are_next_to_nothing(self):
        self.assertEqual((40, ''), self.claim(a=10.0, b=4e4))
