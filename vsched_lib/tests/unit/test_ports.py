# SPDX-License-Identifier: Apache-2.0

import errno
import socket

from oslotest import base

from vsched_lib.tests import ports


class TestPorts(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.port = ports.reserve()

    def connect(self):
        with socket.socket() as client:
            return client.connect_ex(('127.0.0.1', self.port))

    def test_nothing_listens(self):
        self.assertEqual(errno.ECONNREFUSED, self.connect())

    def test_a_service_listens_again_and_again(self):
        for _ in range(2):
            with socket.create_server(('127.0.0.1', self.port)):
                self.assertEqual(0, self.connect())
            self.assertEqual(errno.ECONNREFUSED, self.connect())

    def test_nobody_else_is_given_it(self):
        with socket.socket() as other:
            # Unlike those that ask for any port, it asks for this one.
            self.assertRaises(OSError, other.bind, ('127.0.0.1', self.port))
