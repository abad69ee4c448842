# SPDX-License-Identifier: Apache-2.0

"""The agent's loop hears of overhead profiles, and prices I/O by them."""

import tempfile
from unittest import mock

from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent.profiling import io_costs
from vsched_agent.profiling import manager as host_profiles
from vsched_agent.tests import profiles
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract
from vsched_lib.tests import overhead_profiles

LIVE = contract.ProfileSource.LIVE


class HostCostsTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf([], default_config_files=[])
        self.conf.set_override('state_path', folder.name, 'agent')
        self.conf.set_override('live_interval', 10, 'profiling')
        self.stored = host_profiles.overhead_profiles(self.conf)
        self.now_s = 0.0
        with mock.patch('time.monotonic', lambda: self.now_s):
            self.costs = io_costs.HostCosts(
                self.conf, profiles.FACTS, self.stored
            )

    def profile(self, **changes):
        return overhead_profiles.profile(**{**profiles.FACTS, **changes})

    def use(self):
        with mock.patch('time.monotonic', lambda: self.now_s):
            self.costs.used(
                [
                    messages.UsageSample(
                        '1',
                        1.0,
                        1_000_000,
                        0,
                        0,
                        wakeups=5,
                        net_rx_packets=5,
                        direct_us=4200,
                    )
                ]
            )

    def test_news(self):
        self.assertEqual([], self.costs.poll())
        self.assertIn('not measured', self.costs.problem())
        told = self.profile()
        self.stored.keep(told)
        self.assertEqual([told], self.costs.poll())
        self.assertEqual([], self.costs.poll())
        self.assertIsNone(self.costs.problem())

    def test_refined_prices_are_kept_apart(self):
        self.stored.keep(self.profile())
        self.costs.poll()
        self.use()
        self.assertIsNone(self.stored.latest(LIVE))
        self.now_s = 11.0
        self.use()
        self.assertEqual(2, self.stored.latest(LIVE).n)
        (found,) = self.costs.poll()
        self.assertEqual(LIVE, found.source)
        # The benchmark's go on being used.
        self.assertEqual(3, self.costs.prices.usable().version)

    def test_poor_ones_are_told_and_not_used(self):
        self.stored.keep(self.profile(good=False))
        self.assertEqual(1, len(self.costs.poll()))
        self.assertIn('explains only', self.costs.problem())
        self.now_s = 11.0
        self.use()
        self.assertIsNone(self.stored.latest(LIVE))
