# SPDX-License-Identifier: Apache-2.0

from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent.conf import bus
from vsched_lib.contract import bus as contract_bus
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc


class TestCollectorVersion(base.BaseTestCase):
    """Which version of the collector's interface the option asks for."""

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.transport = rpc.get_transport(self.conf, 'fake://')
        self.addCleanup(self.transport.cleanup)

    def asked(self, version):
        """The versions that a client asks for, in their order."""
        if version is not None:
            self.conf.set_override('collector_version', version, 'bus')
            self.addCleanup(
                self.conf.clear_override, 'collector_version', 'bus'
            )
        return bus.collector_client(
            self.conf, self.transport, lambda: 'e' * 32
        )._versions

    def test_all_of_them(self):
        self.assertEqual(collector_rpc.VERSIONS, self.asked(None))

    def test_one_that_is_pinned(self):
        for version in collector_rpc.VERSIONS:
            self.assertEqual((version,), self.asked(version))

    def test_nothing_signed_is_for_a_bus_in_memory(self):
        self.conf.set_override('authentication', 'none', 'bus')
        self.addCleanup(self.conf.clear_override, 'authentication', 'bus')
        bus.signer(self.conf, True, lambda: 'e' * 32)
        self.assertRaises(
            contract_bus.UnsafeBus,
            bus.signer,
            self.conf,
            False,
            lambda: 'e' * 32,
        )

    def test_one_that_there_is_not(self):
        self.assertRaises(ValueError, self.asked, '0.9')
