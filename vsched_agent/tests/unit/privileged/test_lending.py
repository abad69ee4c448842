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

import contextlib
import errno
import os
import socket

import fixtures
from oslotest import base

from vsched_agent.privileged import clocks
from vsched_agent.privileged import context
from vsched_agent.privileged import lending
from vsched_agent.privileged import perf_events


class TestLending(base.BaseTestCase):
    """Real sockets, and files in the place of events."""

    def setUp(self):
        super().setUp()
        manager = context.in_process(clocks.perf_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.patch(perf_events, 'open_event', self.open_event)
        self.inbox = lending.Inbox()
        self.addCleanup(self.inbox.close)

    def open_event(self, attributes, tid):
        if tid < 0:
            raise OSError(errno.EMFILE, 'full')
        path = os.path.join(self.folder, str(tid))
        return os.open(path, os.O_CREAT | os.O_RDWR)

    def taken(self):
        """The threads whose events arrived, by what is behind them."""
        found = {}
        for tid, event in self.inbox.take().items():
            self.assertFalse(os.get_inheritable(event))
            found[tid] = os.path.basename(
                os.readlink('/proc/self/fd/%d' % event))
            os.close(event)
        return found

    def test_more_than_a_message_holds(self):
        before = len(os.listdir('/proc/self/fd'))
        tids = list(range(1, 301))
        self.assertEqual({}, lending.lend(tids, self.inbox.address))
        self.assertEqual({tid: str(tid) for tid in tids}, self.taken())
        self.assertEqual({}, self.taken())
        self.assertEqual(before, len(os.listdir('/proc/self/fd')))

    def test_those_that_can_not_be_opened(self):
        self.assertEqual(
            {-1: errno.EMFILE}, lending.lend([7, -1], self.inbox.address))
        self.assertEqual({7: '7'}, self.taken())
        self.assertEqual({}, lending.lend([], self.inbox.address))
        self.assertEqual({}, self.taken())

    def test_the_last_of_a_thread_counts(self):
        for _ in range(2):
            lending.lend([7], self.inbox.address)
        before = len(os.listdir('/proc/self/fd'))
        self.assertEqual({7: '7'}, self.taken())
        self.assertEqual(before, len(os.listdir('/proc/self/fd')))

    def test_nobody_is_there(self):
        self.inbox.close()
        self.assertRaises(OSError, lending.lend, [7], self.inbox.address)

    def test_of_another_user(self):
        lending.lend([7], self.inbox.address)
        before = len(os.listdir('/proc/self/fd'))
        self.patch(os, 'geteuid', lambda: 12_345)
        self.assertEqual({}, self.inbox.take())
        self.assertRaises(
            PermissionError, lending.lend, [7], self.inbox.address)
        self.assertEqual(before, len(os.listdir('/proc/self/fd')))

    def test_what_makes_no_sense(self):
        file = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, file)
        with contextlib.closing(socket.socket(
                socket.AF_UNIX, socket.SOCK_SEQPACKET)) as sender:
            sender.connect(self.inbox.address)
            socket.send_fds(sender, [b'\0' * 4], [file, file])
            sender.send(b'\1\0\0\0')
        before = len(os.listdir('/proc/self/fd'))
        self.assertEqual({0}, set(self.taken()))
        self.assertEqual(before, len(os.listdir('/proc/self/fd')))
