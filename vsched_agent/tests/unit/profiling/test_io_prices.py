# SPDX-License-Identifier: Apache-2.0

"""A profile prices a flavor's I/O, or says why it does not."""

from oslotest import base

from vsched_agent.profiling import io_prices as prices
from vsched_agent.tests import profiles
from vsched_lib.contract import errors
from vsched_lib.model import fit
from vsched_lib.model import overhead
from vsched_lib.model import reservation
from vsched_lib.tests import overhead_profiles

#: 1000 packets a second at 12 + 20 us, and 4 ms for a second.
RATES = overhead.Rates(net_rx_pps=1000)
COST_MCPU = 36


class PricesTest(base.BaseTestCase):
    def prices(self, **changes):
        self.profile = overhead_profiles.profile(
            **{**profiles.FACTS, **changes}
        )
        return prices.Prices(lambda: self.profile, profiles.FACTS)

    def test_what_would_cost_too_much_is_refused_with_figures(self):
        found = self.prices()
        promise = reservation.Reservation(200, 20_000)
        need = fit.need_by(
            reservation.Backend.DEADLINE,
            fit.Ask(1, promise, rates=RATES, charged=True),
            promise,
            fit.Host(
                2,
                0,
                1_900,
                frozenset(('deadline',)),
                prices=found.usable().fit,
            ),
        )
        problem = found.refusal(need, need.refusal)
        self.assertEqual(errors.Code.DOES_NOT_FIT, problem.code)
        self.assertIn('36 of its 10 mcpu', problem.detail)
        self.assertEqual(
            {
                'overhead_mcpu': COST_MCPU,
                'promised_mcpu': 10,
                'profile_version': 3,
            },
            problem.figures,
        )

    def test_what_has_no_price(self):
        unpriced = fit.Problem(fit.Cause.OVERHEAD, 'not measured')
        for changes, text in (
            ({'good': False, 'r2': 0.5}, 'explains only 50 %'),
            ({'kernel': '5.10'}, 'kernel: 5.10'),
        ):
            found = self.prices(**changes)
            self.assertIsNone(found.usable())
            self.assertIn(text, found.problem())
            problem = found.refusal(fit.Need(), unpriced)
            self.assertEqual(errors.Code.DOES_NOT_FIT, problem.code)
            self.assertIn(text, problem.detail)
        self.profile = None
        self.assertIn('was not measured', found.problem())
