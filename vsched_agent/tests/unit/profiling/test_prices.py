# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A profile prices a flavor's I/O, or says why it does not."""

from fractions import Fraction

from oslotest import base

from vsched_agent.profiling import prices
from vsched_agent.tests import profiles
from vsched_lib.contract import errors
from vsched_lib.model import overhead
from vsched_lib.tests import overhead_profiles

#: 1000 packets a second at 12 + 20 us, and 4 ms for a second.
RATES = overhead.Rates(net_rx_pps=1000)
COST_MCPU = 36


class PricesTest(base.BaseTestCase):

    def prices(self, refuse=False, **changes):
        self.profile = overhead_profiles.profile(
            **{**profiles.FACTS, **changes})
        return prices.Prices(lambda: self.profile, profiles.FACTS, refuse)

    def test_overprovisioned_it_comes_on_top(self):
        self.assertEqual(COST_MCPU, self.prices().extra_mcpu(
            RATES, False, Fraction(1, 2)))

    def test_charged_it_is_inside(self):
        self.assertEqual(0, self.prices().extra_mcpu(
            RATES, True, Fraction(1, 2)))

    def test_charged_it_must_be_inside(self):
        problem = self.assertRaises(
            errors.Refused, self.prices().extra_mcpu, RATES, True,
            Fraction(1, 100))
        self.assertIn('36 mcpu', problem.detail)
        self.assertIn('10 mcpu', problem.detail)
        self.assertEqual(
            {'overhead_mcpu': 36, 'promised_mcpu': 10,
             'profile_version': 3}, problem.figures)

    def test_no_io_costs_nothing(self):
        self.assertEqual(0, self.prices(refuse=True, good=False).extra_mcpu(
            overhead.Rates(), False, Fraction(1)))

    def test_what_has_no_price(self):
        for changes, text in (
                ({'good': False, 'r2': 0.5}, 'explains only 50 %'),
                ({'kernel': '5.10'}, 'kernel: 5.10')):
            found = self.prices(**changes)
            self.assertIsNone(found.usable())
            self.assertIn(text, found.problem())
            self.assertEqual(0, found.extra_mcpu(RATES, False, Fraction(1)))
            problem = self.assertRaises(
                errors.Refused, self.prices(True, **changes).extra_mcpu,
                RATES, False, Fraction(1))
            self.assertIn(text, problem.detail)
        self.profile = None
        self.assertIn('was not measured', found.problem())
