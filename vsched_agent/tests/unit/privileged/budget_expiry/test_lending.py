# SPDX-License-Identifier: Apache-2.0

import contextlib
import errno
import os
import socket

import fixtures
from oslotest import base

from vsched_agent.privileged.budget_expiry import lending
from vsched_agent.privileged import clocks
from vsched_agent.privileged import ownership
from vsched_agent.privileged import perf_events
from vsched_agent.tests import descriptors
from vsched_agent.tests import in_process


class TestLending(base.BaseTestCase):
    """Real sockets, with files as events."""

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(clocks.perf_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.patch(perf_events, 'open_event', self.open_event)
        self.refused = {}
        self.patch(
            ownership,
            'refusals',
            lambda tids: {
                tid: self.refused[tid] for tid in tids if tid in self.refused
            },
        )
        self.inbox = lending.Inbox()
        self.addCleanup(self.inbox.close)

    def open_event(self, attributes, tid):
        if tid < 0:
            raise OSError(errno.EMFILE, 'full')
        path = os.path.join(self.folder, str(tid))
        return os.open(path, os.O_CREAT | os.O_RDWR)

    def taken(self):
        """Return the threads whose events arrived, by their files."""
        found = {}
        for tid, event in self.inbox.take().items():
            self.assertFalse(os.get_inheritable(event))
            found[tid] = os.path.basename(
                os.readlink('/proc/self/fd/%d' % event)
            )
            os.close(event)
        return found

    def test_more_than_a_message_holds(self):
        before = descriptors.links(self.folder)
        tids = list(range(1, 301))
        self.assertEqual({}, lending.lend(tids, self.inbox.address))
        self.assertEqual({tid: str(tid) for tid in tids}, self.taken())
        self.assertEqual({}, self.taken())
        self.assertEqual(before, descriptors.links(self.folder))

    def test_events_that_cannot_be_opened(self):
        self.assertEqual(
            {-1: errno.EMFILE}, lending.lend([7, -1], self.inbox.address)
        )
        self.assertEqual({7: '7'}, self.taken())
        self.assertEqual({}, lending.lend([], self.inbox.address))
        self.assertEqual({}, self.taken())

    def test_threads_of_others_are_left_out(self):
        self.refused[8] = 'thread 8 is the shell'
        self.assertEqual(
            {8: errno.EPERM}, lending.lend(iter([7, 8, 9]), self.inbox.address)
        )
        self.assertEqual({7: '7', 9: '9'}, self.taken())
        self.assertNotIn('8', os.listdir(self.folder))

    def test_the_last_of_a_thread_counts(self):
        for _ in range(2):
            lending.lend([7], self.inbox.address)
        before = descriptors.links(self.folder)
        self.assertEqual({7: '7'}, self.taken())
        self.assertEqual(before, descriptors.links(self.folder))

    def test_no_inbox(self):
        self.inbox.close()
        self.assertRaises(OSError, lending.lend, [7], self.inbox.address)

    def test_of_another_user(self):
        lending.lend([7], self.inbox.address)
        before = descriptors.links(self.folder)
        self.patch(os, 'geteuid', lambda: 12_345)
        self.assertEqual({}, self.inbox.take())
        self.assertRaises(
            PermissionError, lending.lend, [7], self.inbox.address
        )
        self.assertEqual(before, descriptors.links(self.folder))

    def test_what_makes_no_sense(self):
        file = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, file)
        with contextlib.closing(
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ) as sender:
            sender.connect(self.inbox.address)
            socket.send_fds(sender, [b'\0' * 4], [file, file])
            sender.send(b'\1\0\0\0')
        before = descriptors.links(self.folder)
        self.assertEqual({0}, set(self.taken()))
        self.assertEqual(before, descriptors.links(self.folder))
