# SPDX-License-Identifier: Apache-2.0

"""One call, one connection, by libvirt's driver for tests."""

from concurrent import futures
import threading

import libvirt
from oslotest import base

from vsched_agent.hypervisor.libvirt import pool as connection_pool

LONG_S = 30
URI = 'test:///default'


def itself(connection):
    return connection


class ConnectionPoolTest(base.BaseTestCase):
    def start(self, uri=URI):
        pool = connection_pool.ConnectionPool(uri, 5)
        pool.start()
        self.addCleanup(pool.stop)
        return pool

    def hold(self, pool, threads, count):
        """Have so many calls under way; they end when they may."""
        self.may_end = threading.Event()
        self.addCleanup(self.may_end.set)
        under_way = threading.Barrier(count + 1)

        def wait(connection):
            under_way.wait(LONG_S)
            self.may_end.wait(LONG_S)
            return connection

        calls = [threads.submit(pool.run, LONG_S, wait) for _ in range(count)]
        under_way.wait(LONG_S)
        return calls

    def threads(self):
        pool = futures.ThreadPoolExecutor(connection_pool.MOST)
        self.addCleanup(pool.shutdown)
        return pool

    def test_one_after_the_other(self):
        pool = self.start()
        self.assertIs(pool.run(LONG_S, itself), pool.run(LONG_S, itself))

    def test_at_the_same_time(self):
        pool = self.start()
        calls = self.hold(pool, self.threads(), 3)
        other = pool.run(LONG_S, itself)
        self.may_end.set()
        found = [call.result(LONG_S) for call in calls]
        self.assertEqual(4, len({id(one) for one in [other, *found]}))

    def test_no_more_than_that(self):
        pool = self.start()
        calls = self.hold(pool, self.threads(), connection_pool.MOST)
        error = self.assertRaises(
            connection_pool.NoConnection, pool.run, 0.01, itself
        )
        self.assertIn('5 calls wait', str(error))
        self.may_end.set()
        found = [call.result(LONG_S) for call in calls]
        self.assertIn(pool.run(LONG_S, itself), found)

    def test_a_daemon_that_is_not_there(self):
        pool = self.start('test:///nowhere')
        for _ in range(connection_pool.MOST + 1):
            error = self.assertRaises(
                connection_pool.NoConnection, pool.run, LONG_S, itself
            )
            self.assertIn('test:///nowhere', str(error))

    def test_one_that_broke_meanwhile(self):
        pool = self.start()

        def end(connection):
            # As the client does when the daemon goes.
            connection.isAlive = lambda: 0
            raise libvirt.libvirtError('gone')

        first = pool.run(LONG_S, itself)
        error = self.assertRaises(
            connection_pool.NoConnection, pool.run, LONG_S, end
        )
        self.assertIn('gone', str(error))
        self.assertIsNot(first, pool.run(LONG_S, itself))

    def test_one_that_broke_since(self):
        pool = self.start()
        first = pool.run(LONG_S, itself)
        first.isAlive = lambda: 0
        self.assertIsNot(first, pool.run(LONG_S, itself))

    def test_a_call_that_fails(self):
        pool = self.start()
        first = pool.run(LONG_S, itself)
        self.assertRaises(
            libvirt.libvirtError,
            pool.run,
            LONG_S,
            lambda connection: connection.lookupByName('nobody'),
        )
        self.assertIs(first, pool.run(LONG_S, itself))

    def test_stopped(self):
        pool = connection_pool.ConnectionPool(URI, 5)
        self.assertRaises(
            connection_pool.NoConnection, pool.run, LONG_S, itself
        )
        pool.start()
        calls = self.hold(pool, self.threads(), 1)
        idle = pool.run(LONG_S, itself)
        pool.stop()
        self.assertRaises(libvirt.libvirtError, idle.listDomainsID)
        self.may_end.set()
        late = calls[0].result(LONG_S)
        self.assertRaises(libvirt.libvirtError, late.listDomainsID)
        self.assertRaises(
            connection_pool.NoConnection, pool.run, LONG_S, itself
        )
