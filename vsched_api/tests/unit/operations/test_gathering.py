# SPDX-License-Identifier: Apache-2.0

"""Batches that share transactions: on SQLite, and when they wait."""

import threading
import time
import types

from oslotest import base as test_base

from vsched_api.db import errors as db_errors
from vsched_api.operations import gathering
from vsched_api.tests import base
from vsched_api.tests.suites import gathering as suite

PATIENCE_S = 60
#: By the test's clock: how long a transaction takes.
TRANSACTION_S = 0.005


class TestGathering(suite.Gathering, base.TestCase):
    """The suite, on a file."""


class TestWaiting(test_base.BaseTestCase):
    """When the first batch of a queue waits for others, by a test's clock.

    ``waits`` are the seconds of each wait, ``groups`` the hosts of each
    transaction. ``during`` and ``meanwhile`` are what happens during the next
    transactions and waits.
    """

    def setUp(self):
        super().setUp()
        self.now_s = 1000.0
        self.waits, self.groups = [], []
        self.during, self.meanwhile = [], []
        self.threads = []
        self.addCleanup(self.join)
        self.queue = self.make(32)

    def make(self, limit):
        return gathering.Gathering(
            types.SimpleNamespace(write=lambda work: work(None)),
            self.put,
            limit,
            lambda: self.now_s,
            self.wait,
        )

    def put(self, session, entries):
        self.groups.append(sorted(one.batch.host for one in entries))
        self.now_s += TRANSACTION_S
        if self.during:
            self.during.pop(0)()
        return [one.batch.host for one in entries]

    def wait(self, event, timeout_s):
        self.waits.append(round(timeout_s, 6))
        if self.meanwhile:
            self.meanwhile.pop(0)()
            self.assertTrue(event.wait(PATIENCE_S))
        else:
            self.now_s += timeout_s

    def store(self, host='a'):
        return self.queue.store(types.SimpleNamespace(host=host), 0.0)

    def arrive(self, *hosts):
        """Queue batches of other threads; returns when they are queued."""
        for host in hosts:
            thread = threading.Thread(target=self.store, args=(host,))
            self.threads.append(thread)
            before = self.count()
            thread.start()
            ends_s = time.monotonic() + PATIENCE_S
            while self.count() == before and time.monotonic() < ends_s:
                time.sleep(0.001)

    def count(self):
        with self.queue._lock:
            return len(self.queue._queue)

    def join(self):
        for thread in self.threads:
            thread.join(PATIENCE_S)
            self.assertFalse(thread.is_alive())
        self.threads.clear()

    def together(self, *others):
        """Store one batch, while others arrive that follow it."""
        self.during.append(lambda: self.arrive(*others))
        self.store()
        self.join()

    def test_a_lone_host_never_waits(self):
        for _ in range(300):
            self.assertEqual('a', self.store())
            self.now_s += 0.001
        self.assertEqual([], self.waits)
        self.assertEqual([['a']] * 300, self.groups)

    def test_as_many_are_awaited_as_there_were_at_once(self):
        # Two wait while one is stored: three at once.
        self.meanwhile.append(lambda: self.arrive('d'))
        self.together('b', 'c')
        self.assertEqual([['a'], ['b', 'c', 'd']], self.groups)
        self.assertEqual([gathering.MAX_WAIT_S], self.waits)

    def test_nobody_is_awaited_for_longer(self):
        self.together('b')
        self.assertEqual([['a'], ['b']], self.groups)
        self.assertEqual([gathering.MAX_WAIT_S], self.waits)

    def test_the_wait_counts_from_the_end_of_a_transaction(self):
        self.together('b')
        self.waits.clear()
        self.now_s += 0.02
        self.store()
        self.assertEqual([0.03], self.waits)
        self.waits.clear()
        self.now_s += gathering.MAX_WAIT_S
        self.store()
        self.assertEqual([], self.waits)

    def test_what_was_a_second_ago_is_forgotten(self):
        self.together('b')
        ends_s = self.now_s + gathering.MEMORY_S
        while self.now_s < ends_s:
            self.store()
        self.waits.clear()
        self.store()
        self.assertEqual([], self.waits)

    def test_no_more_are_awaited_than_a_transaction_stores(self):
        self.queue = self.make(2)
        self.during.append(lambda: self.arrive('b', 'c', 'd'))
        self.store()
        self.join()
        # The last one waits, for one.
        self.assertEqual([['a'], ['b', 'c'], ['d']], self.groups)
        self.assertEqual([gathering.MAX_WAIT_S], self.waits)

    def test_those_after_a_failure_are_stored(self):
        problem = db_errors.DatabaseUnavailable('away')

        def fail():
            self.arrive('b', 'c')
            raise problem

        self.during.append(fail)
        self.assertRaises(db_errors.DatabaseUnavailable, self.store)
        self.join()
        self.assertEqual([['a'], ['b', 'c']], self.groups)
        self.assertEqual([gathering.MAX_WAIT_S], self.waits)
