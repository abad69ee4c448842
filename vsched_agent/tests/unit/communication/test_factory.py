# SPDX-License-Identifier: Apache-2.0

from oslo_config import cfg
from oslotest import base

from vsched_agent.communication import factory
from vsched_agent.conf import communication as options
from vsched_lib.model import granularity


class FactoryTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        options.register_opts(self.conf)
        self.conf([])

    def test_defaults_are_those_of_the_policy(self):
        made = factory.make_manager(self.conf, None, lambda: 2)
        self.assertTrue(made._settings.enabled)
        self.assertEqual(granularity.Policy(), made._settings.policy)

    def test_limits(self):
        self.conf.set_override('min_runtime_us', 200, 'communication')
        self.conf.set_override('min_period_us', 5_000, 'communication')
        self.assertEqual(
            granularity.Limits(200_000, 5_000_000, 4_000_000),
            factory.limits(self.conf, 4_000),
        )

    def test_switched_off(self):
        self.conf.set_override('enabled', False, 'communication')
        made = factory.make_manager(self.conf, None, lambda: 2)
        made.set_aware('a', True)
        self.assertEqual(set(), made._aware)
