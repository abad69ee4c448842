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

"""What the kernel is asked for, and what is nobody's business."""

import errno
import os
import socket
import struct
from unittest import mock

from oslotest import base

from vsched_agent.privileged import context
from vsched_agent.privileged import links


class LinksTest(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        inside = context.in_process(links.links_pctxt)
        inside.__enter__()
        self.addCleanup(inside.__exit__, None, None, None)
        self.asked = []
        self.refuse = {}
        for name, fake in (('_talk', self.talk),
                           ('atexit', mock.Mock()),
                           ('_made', set())):
            patch = mock.patch('vsched_agent.privileged.links.' + name, fake)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(
            socket, 'if_nametoindex', autospec=True, return_value=42)
        patch.start()
        self.addCleanup(patch.stop)

    def talk(self, kind, flags, body):
        size, = struct.unpack_from('=H', body, 16)
        name = body[20:16 + size].rstrip(b'\0').decode()
        self.asked.append((kind, name))
        number = self.refuse.get((kind, name))
        if number:
            raise OSError(number, os.strerror(number))

    def test_a_network(self):
        self.assertEqual(0, links.make_network(77, 78))
        self.assertEqual(
            [(links._NEWLINK, name) for name in (
                'vsched-b77', 'vsched-v77', 'vsched-b77', 'vsched-v77')],
            self.asked)
        self.assertEqual('vsched-b77', links.bridge_of(77))

    def test_what_can_not_be_made_leaves_nothing(self):
        self.refuse[links._NEWLINK, 'vsched-v77'] = errno.EPERM
        self.assertEqual(errno.EPERM, links.make_network(77, 78))
        self.assertEqual(
            [(links._DELLINK, 'vsched-v77'), (links._DELLINK, 'vsched-b77')],
            self.asked[-2:])

    def test_what_is_gone_is_removed(self):
        self.refuse[links._DELLINK, 'vsched-b77'] = errno.ENODEV
        self.assertEqual(0, links.remove_network(77))
        self.refuse[links._DELLINK, 'vsched-b77'] = errno.EBUSY
        self.assertEqual(errno.EBUSY, links.remove_network(77))

    def test_only_what_nobody_owns_any_more_is_stale(self):
        names = ['lo', 'vsched-b%d' % os.getpid(), 'vsched-b4194305',
                 'vsched-v4194305', 'vsched-bridge', 'br-vsched-b4194305']
        with mock.patch.object(
                socket, 'if_nameindex', autospec=True,
                return_value=list(enumerate(names))):
            self.assertEqual(['vsched-b4194305', 'vsched-v4194305'],
                             links.remove_stale_networks())

    def test_attributes_are_padded(self):
        self.assertEqual(
            b'\x07\0\x03\0abc\0', links._attribute(3, b'abc'))
