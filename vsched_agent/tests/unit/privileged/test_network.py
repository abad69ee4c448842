# SPDX-License-Identifier: Apache-2.0

"""The private network: what is asked of the kernel, and for whom."""

import errno
import os
import socket
from unittest import mock

from oslotest import base
import pyroute2

from vsched_agent.privileged import network
from vsched_agent.privileged import ownership
from vsched_agent.tests import in_process


class LinksTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.patch(ownership, 'client', lambda: 77)
        self.refused = {}
        self.patch(ownership, 'child_refusals', lambda pids: self.refused)
        inside = in_process.entrypoints(network.links_pctxt)
        inside.__enter__()
        self.addCleanup(inside.__exit__, None, None, None)
        self.asked = []
        self.more = {}
        self.refuse = {}
        for name, fake in (('atexit', mock.Mock()), ('_made', set())):
            patch = mock.patch('vsched_agent.privileged.network.' + name, fake)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(pyroute2, 'RawIPRoute', autospec=True)
        requests = patch.start().return_value.__enter__.return_value
        requests.link.side_effect = self.link
        self.addCleanup(patch.stop)
        patch = mock.patch.object(
            socket, 'if_nametoindex', autospec=True, return_value=42
        )
        patch.start()
        self.addCleanup(patch.stop)

    def link(self, command, ifname, **more):
        self.asked.append((command, ifname))
        self.more[command, ifname] = more
        number = self.refuse.get((command, ifname))
        if number:
            raise pyroute2.NetlinkError(number)

    def test_a_network(self):
        self.assertEqual(0, network.make_network(77, 78))
        self.assertEqual(
            [
                ('add', 'vsched-b77'),
                ('add', 'vsched-v77'),
                ('set', 'vsched-b77'),
                ('set', 'vsched-v77'),
            ],
            self.asked,
        )
        self.assertEqual('bridge', self.more['add', 'vsched-b77']['kind'])
        self.assertEqual(
            {
                'kind': 'veth',
                'master': 42,
                'peer': {'ifname': 'eth0', 'net_ns_pid': 78},
            },
            self.more['add', 'vsched-v77'],
        )
        self.assertEqual('vsched-b77', network.bridge_of(77))

    def test_what_can_not_be_made_leaves_nothing(self):
        self.refuse['add', 'vsched-v77'] = errno.EPERM
        self.assertEqual(errno.EPERM, network.make_network(77, 78))
        self.assertEqual(
            [('del', 'vsched-v77'), ('del', 'vsched-b77')], self.asked[-2:]
        )

    def test_what_is_gone_is_removed(self):
        self.refuse['del', 'vsched-b77'] = errno.ENODEV
        self.assertEqual(0, network.remove_network(77))
        self.refuse['del', 'vsched-b77'] = errno.EBUSY
        self.assertEqual(errno.EBUSY, network.remove_network(77))

    def test_only_what_nobody_owns_any_more_is_stale(self):
        names = [
            'lo',
            'vsched-b%d' % os.getpid(),
            'vsched-b4194305',
            'vsched-v4194305',
            'vsched-bridge',
            'br-vsched-b4194305',
        ]
        with mock.patch.object(
            socket,
            'if_nameindex',
            autospec=True,
            return_value=list(enumerate(names)),
        ):
            self.assertEqual(
                ['vsched-b4194305', 'vsched-v4194305'],
                network.remove_stale_networks(),
            )

    def test_for_nobody_else(self):
        self.assertRaises(PermissionError, network.make_network, 76, 78)
        self.assertRaises(PermissionError, network.remove_network, 76)
        self.refused[78] = 'not a child'
        self.assertRaises(PermissionError, network.make_network, 77, 78)
