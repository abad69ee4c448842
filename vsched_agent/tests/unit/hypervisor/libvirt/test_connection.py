# SPDX-License-Identifier: Apache-2.0

"""A connection that comes back, by libvirt's driver for tests."""

import queue
from unittest import mock

import libvirt
from oslotest import base as test_base

from vsched_agent.hypervisor.libvirt import connection as libvirt_connection

LONG_S = 30


class ConnectionTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.states = queue.Queue()

    def start(self, uri='test:///default'):
        connection = libvirt_connection.Connection(
            uri, 0.02, 5, lambda uuid: None, self.states.put
        )
        connection.start()
        self.addCleanup(connection.stop)
        return connection

    def test_connects(self):
        connection = self.start()
        self.assertTrue(self.states.get(timeout=LONG_S))
        self.assertEqual(1, connection.current.isAlive())

    def test_tries_again(self):
        real, failures = libvirt.open, [0, 0, 0]

        def fail_first(uri):
            if failures:
                failures.pop()
                raise libvirt.libvirtError('on purpose')
            return real(uri)

        with mock.patch.object(libvirt, 'open', fail_first):
            connection = self.start()
            self.assertTrue(self.states.get(timeout=LONG_S))
        self.assertEqual([], failures)
        self.assertIsNotNone(connection.current)

    def test_lost_and_found_again(self):
        connection = self.start()
        self.assertTrue(self.states.get(timeout=LONG_S))
        first = connection.current
        connection.lost(first)
        self.assertFalse(self.states.get(timeout=LONG_S))
        self.assertTrue(self.states.get(timeout=LONG_S))
        self.assertIsNot(first, connection.current)
        # News of the old one is no news.
        connection.lost(first)
        self.assertIsNotNone(connection.current)

    def test_stopped_while_it_waits(self):
        connection = libvirt_connection.Connection(
            'test:///nowhere', 3600, 5, lambda uuid: None, self.states.put
        )
        connection.start()
        connection.stop()
        self.assertIsNone(connection.current)
        self.assertTrue(self.states.empty())

    def test_backoff(self):
        connection = libvirt_connection.Connection(
            'test:///default', 30, 5, print, print
        )
        for failures, longest_s in (
            (0, 0.5),
            (1, 1),
            (5, 16),
            (6, 30),
            (10**6, 30),
        ):
            delay_s = connection._backoff_s(failures)
            self.assertLessEqual(longest_s / 2, delay_s)
            self.assertLessEqual(delay_s, longest_s)
