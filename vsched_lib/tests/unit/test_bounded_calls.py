# SPDX-License-Identifier: Apache-2.0

"""Calls that hang block nobody else."""

import threading
import time

from oslotest import base as test_base

from vsched_lib import bounded_calls

LONG_S = 30


class BoundedCallsTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.calls = bounded_calls.BoundedCalls('vsched-test', limit=2)
        self.release = threading.Event()
        self.addCleanup(self.calls.close)
        self.addCleanup(self.release.set)

    def hang(self, key):
        self.assertRaises(
            bounded_calls.CallTimedOut,
            self.calls.run,
            key,
            0.01,
            lambda: self.release.wait(LONG_S),
        )

    def test_result(self):
        self.assertEqual(7, self.calls.run('a', LONG_S, lambda: 7))

    def test_error(self):
        def fail():
            raise KeyError('x')

        self.assertRaises(KeyError, self.calls.run, 'a', LONG_S, fail)

    def test_a_hanging_key_is_refused_at_once(self):
        self.hang('a')
        self.assertEqual({'a'}, self.calls.overdue)
        made = []
        self.assertRaises(
            bounded_calls.CallTimedOut,
            self.calls.run,
            'a',
            LONG_S,
            lambda: made.append(1),
        )
        self.assertEqual([], made)
        self.assertEqual(1, self.calls.run('b', LONG_S, lambda: 1))

    def test_a_late_return_frees_the_key(self):
        returned = threading.Event()

        def late():
            self.release.wait(LONG_S)
            returned.set()

        self.assertRaises(
            bounded_calls.CallTimedOut, self.calls.run, 'a', 0.01, late
        )
        self.release.set()
        self.assertTrue(returned.wait(LONG_S))
        # The key is freed right after; the pool's one other thread may be
        # ahead of it.
        for _ in range(1000):
            if not self.calls.overdue:
                break
            threading.Event().wait(0.01)
        self.assertEqual(2, self.calls.run('a', LONG_S, lambda: 2))

    def test_all_threads_hang(self):
        self.hang('a')
        self.hang('b')
        self.assertRaises(
            bounded_calls.CallTimedOut, self.calls.run, 'c', LONG_S, lambda: 1
        )

    def test_many_callers_share_few_threads(self):
        results = []
        callers = [
            threading.Thread(
                target=lambda: results.append(
                    self.calls.run('a', LONG_S, threading.get_ident)
                )
            )
            for _ in range(20)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertEqual(20, len(results))
        self.assertLessEqual(len(set(results)), 2)

    def threads(self):
        return [
            thread
            for thread in threading.enumerate()
            if thread.name.startswith('vsched-test')
        ]

    def test_threads_that_idle_end(self):
        self.patch(bounded_calls, 'IDLE_S', 0.01)
        for _ in range(2):
            self.assertEqual(3, self.calls.run('a', LONG_S, lambda: 3))
            for thread in self.threads():
                thread.join(LONG_S)
            self.assertEqual([], self.threads())

    def test_more_calls_than_threads_and_then_more_again(self):
        self.patch(bounded_calls, 'IDLE_S', 0.02)
        for _ in range(3):
            self.nine_at_once()
            time.sleep(0.02)

    def nine_at_once(self):
        found = []
        callers = [
            threading.Thread(
                target=lambda: found.append(
                    self.calls.run('a', LONG_S, lambda: time.sleep(0.001))
                )
            )
            for _ in range(9)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertEqual([None] * 9, found)

    def test_closed(self):
        self.calls.run('a', LONG_S, lambda: 1)
        self.calls.close()
        self.assertRaises(
            bounded_calls.CallTimedOut, self.calls.run, 'a', LONG_S, lambda: 1
        )
        # Closing gives up waiting for them after a second.
        for thread in self.threads():
            thread.join(LONG_S)
        self.assertEqual([], self.threads())
