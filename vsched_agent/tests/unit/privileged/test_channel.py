# SPDX-License-Identifier: Apache-2.0

import select
import socket
import threading

from oslo_privsep import comm
from oslotest import base

from vsched_agent.privileged import channel
from vsched_agent.privileged import sched

PATIENCE_S = 60


class TestLostHelper(base.BaseTestCase):
    """A call in progress fails when the helper ends; it does not wait."""

    def setUp(self):
        super().setUp()
        self.failures = []
        ours, self.theirs = socket.socketpair()
        self.addCleanup(self.theirs.close)
        self.addCleanup(ours.close)
        answering = threading.Thread(target=self.answer_the_first)
        answering.start()
        self.channel = channel.Channel(ours, sched.sched_pctxt)
        answering.join(PATIENCE_S)

    def answer_the_first(self):
        number, _ = next(comm.Deserializer(self.theirs))
        comm.Serializer(self.theirs).send((number, (comm.Message.PONG.value,)))

    def call(self):
        def run():
            try:
                self.channel.remote_call('name', (), {}, None)
            except OSError as failure:
                self.failures.append(failure)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        # The request has been sent.
        self.assertTrue(select.select([self.theirs], [], [], PATIENCE_S)[0])
        return thread

    def assert_fails(self, thread):
        thread.join(PATIENCE_S)
        self.assertFalse(thread.is_alive())
        self.assertEqual(1, len(self.failures))

    def test_with_the_request_read(self):
        thread = self.call()
        self.theirs.recv(65536)
        self.theirs.close()
        self.assert_fails(thread)

    def test_with_the_request_unread(self):
        thread = self.call()
        # The kernel resets the connection.
        self.theirs.close()
        self.assert_fails(thread)

    def test_the_next_call(self):
        self.theirs.close()
        self.assertRaises(
            OSError, self.channel.remote_call, 'name', (), {}, None
        )
