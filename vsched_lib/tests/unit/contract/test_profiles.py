# SPDX-License-Identifier: Apache-2.0

"""Overhead profiles cross processes, and mean prices."""

import json
import math

from oslotest import base

from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.tests import overhead_profiles


class OverheadProfileTestCase(base.BaseTestCase):
    def test_round_trip(self):
        told = overhead_profiles.profile()
        self.assertEqual(
            told,
            profiles.OverheadProfile.from_dict(
                json.loads(json.dumps(told.to_dict()))
            ),
        )

    def test_a_price_without_a_cost(self):
        raw = overhead_profiles.profile().to_dict()
        del raw['prices'][0]['cost_ns']
        problem = self.assertRaises(
            wire.MalformedMessage, profiles.OverheadProfile.from_dict, raw
        )
        self.assertIn('OverheadPrice.cost_ns', str(problem))

    def test_prices_as_the_model_has_them(self):
        found = overhead_profiles.profile().fit
        self.assertEqual(
            overhead_profiles.PRICES['net_rx'], found.prices['net_rx'].cost_ns
        )
        self.assertEqual(250.0, found.prices['net_rx'].error_ns)
        self.assertEqual(math.inf, found.prices['idle_s'].error_ns)
        self.assertTrue(found.good)
        self.assertEqual(
            32_000.0, found.predict_ns({'net_rx': 1, 'wakeups': 1})
        )
