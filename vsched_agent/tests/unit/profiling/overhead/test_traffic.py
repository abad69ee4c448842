# SPDX-License-Identifier: Apache-2.0

"""The other end of a calibration VM's network does as it is told."""

import socket
import time

from oslotest import base

from vsched_agent.profiling.overhead import traffic


class TrafficTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(('127.0.0.1', 0))
        self.socket.settimeout(60)
        self.port = self.socket.getsockname()[1]
        self.streams = []

    def obey(self, text):
        return traffic._obey(text.split(), self.streams)

    def test_a_burst_is_sent_at_once(self):
        self.assertEqual(
            b'ok\n', self.obey('send 127.0.0.1 %d 100 3 20' % self.port)
        )
        (stream,) = self.streams
        self.addCleanup(stream._socket.close)
        due_s = stream.due_s
        stream.send(due_s)
        for _ in range(3):
            self.assertEqual(bytes(20), self.socket.recv(100))
        self.assertAlmostEqual(due_s + 0.03, stream.due_s)

    def test_what_is_late_is_not_made_up_for(self):
        self.obey('send 127.0.0.1 %d 100 1 20' % self.port)
        (stream,) = self.streams
        self.addCleanup(stream._socket.close)
        now_s = time.monotonic() + 60
        stream.send(now_s)
        self.assertEqual(now_s, stream.due_s)

    def test_quiet(self):
        self.obey('send 127.0.0.1 %d 100 1 20' % self.port)
        self.streams[0]._socket.close()
        self.assertEqual(b'ok\n', self.obey('quiet'))
        self.assertEqual([], self.streams)

    def test_what_is_no_order(self):
        for text in ('dance', 'send 127.0.0.1 x', 'send 127.0.0.1', ''):
            self.assertTrue(self.obey(text).startswith(b'failed '), text)
