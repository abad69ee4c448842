# SPDX-License-Identifier: Apache-2.0

"""The private network of calibration VMs, on this kernel, by its helper."""

import os
import pathlib
import socket
import time

from oslotest import base

from vsched_agent.privileged import network as links
from vsched_agent.profiling.overhead import peer
from vsched_lib.tests import requirements

#: Only a hang takes longer.
PATIENCE_S = 120
_CARDS = pathlib.Path('/sys/class/net')


class TestNetwork(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            requirements.require(self, 'libvirt', 'not root')
        self.addCleanup(links.links_pctxt.stop)
        self.bridge = 'vsched-b%d' % os.getpid()
        self.card = 'vsched-v%d' % os.getpid()

    def exists(self):
        names = {name for _, name in socket.if_nameindex()}
        return self.bridge in names, self.card in names

    def wait_until_gone(self):
        deadline = time.monotonic() + PATIENCE_S
        while self.exists() != (False, False):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_it_is_made_and_removed(self):
        with peer.Network() as network:
            self.assertEqual(self.bridge, network.bridge)
            self.assertEqual((True, True), self.exists())
            self.assertEqual(
                self.bridge,
                os.path.basename(os.readlink(_CARDS / self.card / 'master')),
            )
            for name in (self.bridge, self.card):
                flags = int((_CARDS / name / 'flags').read_text(), 16)
                self.assertTrue(flags & 1, name)
            # Neither makes itself an address.
            addressed = pathlib.Path('/proc/net/if_inet6')
            if addressed.exists():
                self.assertNotIn('vsched-', addressed.read_text())
        self.assertEqual((False, False), self.exists())

    def test_it_ends_with_its_helper(self):
        with peer.Network():
            links.links_pctxt.stop()
            self.wait_until_gone()

    def test_a_name_that_is_taken_is_refused(self):
        with peer.Network() as network:
            self.assertNotEqual(
                0, links.make_network(os.getpid(), network._process.pid)
            )
            self.assertEqual((False, False), self.exists())
