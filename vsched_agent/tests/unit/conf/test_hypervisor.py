# SPDX-License-Identifier: Apache-2.0

"""Options of the connection to the hypervisor."""

from oslo_config import cfg
from oslotest import base as test_base

from vsched_agent.conf import hypervisor as options
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import factory
from vsched_agent.hypervisor.libvirt import driver as libvirt_driver


class OptionsTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        options.register_opts(self.conf)
        self.conf([])

    def test_defaults_are_the_driver_s_own(self):
        made = factory.from_conf(self.conf)
        self.assertIsInstance(made, libvirt_driver.LibvirtHypervisor)
        self.assertEqual(
            vars(libvirt_driver.LibvirtHypervisor()).keys(), vars(made).keys()
        )
        for name in (
            '_uri',
            '_run_dir',
            '_reconnect_max_s',
            '_keepalive_s',
            '_call_timeout_s',
            '_watch_interval_s',
            '_monitor_timeout_s',
        ):
            self.assertEqual(
                getattr(libvirt_driver.LibvirtHypervisor(), name),
                getattr(made, name),
                name,
            )

    def test_every_option_explains_itself(self):
        ((group, listed),) = options.list_opts()
        self.assertEqual('hypervisor', group.name)
        for option in listed:
            self.assertTrue(option.help, option.name)

    def test_once_does_not_wait_for_ever(self):
        self.conf.set_override('uri', 'test:///nowhere', 'hypervisor')
        self.conf.set_override('call_timeout', 0.5, 'hypervisor')
        with factory.once(self.conf) as driver:
            self.assertRaises(base.HypervisorUnavailable, driver.domains)
