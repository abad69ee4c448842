# SPDX-License-Identifier: Apache-2.0

"""Options of the connection to the hypervisor."""

import subprocess
import sys

from oslo_config import cfg
from oslotest import base as test_base

from vsched_agent.conf import hypervisor as options
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import factory
from vsched_agent.hypervisor.libvirt import driver as libvirt_driver
from vsched_agent.hypervisor.xen import driver as xen_driver


class OptionsTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        options.register_opts(self.conf)
        self.conf([])
        # Groups are shared by all that register them.
        self.addCleanup(self.conf.clear_override, 'uri', 'hypervisor')

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

    def test_the_uri_selects_the_driver(self):
        for uri, kind in (
            ('qemu:///system', 'qemu'),
            ('test:///default', 'qemu'),
            ('xen:///system', 'xen'),
            ('xen+unix:///system?socket=/x', 'xen'),
        ):
            self.conf.set_override('uri', uri, 'hypervisor')
            self.assertEqual(kind, factory.from_conf(self.conf).kind)
            self.assertEqual(
                kind == 'xen', factory.channel_from_conf(self.conf) is None
            )

    def test_defaults_are_those_of_the_driver_of_xen(self):
        self.conf.set_override('uri', 'xen:///system', 'hypervisor')
        made = factory.from_conf(self.conf)
        default = xen_driver.XenHypervisor()
        for name in (
            '_uri',
            '_reconnect_max_s',
            '_keepalive_s',
            '_call_timeout_s',
            '_watch_interval_s',
        ):
            self.assertEqual(getattr(default, name), getattr(made, name), name)

    def test_nothing_of_xen_is_imported_elsewhere(self):
        done = subprocess.run(
            (
                sys.executable,
                '-c',
                'import sys; import vsched_agent.cmd.agent; '
                'print([one for one in sys.modules if ".xen" in one])',
            ),
            capture_output=True,
            text=True,
            check=True,
        )
        # The helper's module is imported for its name and its options.
        self.assertEqual(
            "['vsched_agent.privileged.xen']",
            done.stdout.strip().splitlines()[-1],
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
