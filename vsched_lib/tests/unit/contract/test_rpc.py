# SPDX-License-Identifier: Apache-2.0

"""The bus in memory, and a bus that hangs."""

import threading
import time

from oslotest import base

from vsched_lib.contract import errors
from vsched_lib.contract import rpc
from vsched_lib.tests import rpc_suite


class MemoryTestCase(rpc_suite.RpcSuite, base.BaseTestCase):
    url = 'fake://'


class HeartbeatsTestCase(
    rpc_suite.OnBus, rpc_suite.HeartbeatTests, base.BaseTestCase
):
    """Requests that ask for heartbeats, with the messages of a broker."""

    url = 'kombu+memory://'


class BoundedTestCase(base.BaseTestCase):
    def test_result_passes(self):
        bounded = rpc.Bounded('agent', rpc_suite.PATIENCE_S)
        self.assertEqual(3, bounded.run('ask', lambda: 3))
        self.assertIsNone(bounded.run('ask', lambda: None))

    def test_any_failure_is_unreachable_with_its_cause(self):
        bounded = rpc.Bounded('agent', rpc_suite.PATIENCE_S)
        error = self.assertRaises(
            errors.Unreachable, bounded.run, 'ask', lambda: 1 / 0
        )
        self.assertIsInstance(error.__cause__, ZeroDivisionError)
        self.assertIn('agent: ask: ZeroDivisionError', str(error))

    def test_stuck_use_is_not_joined_by_others(self):
        go = threading.Event()
        self.addCleanup(go.set)
        bounded = rpc.Bounded('agent', 0.01)
        error = self.assertRaises(
            errors.Unreachable, bounded.run, 'ask', go.wait
        )
        self.assertIn('no answer within 0.01 s', str(error))
        asked = []
        error = self.assertRaises(
            errors.Unreachable, bounded.run, 'ask', lambda: asked.append(1)
        )
        self.assertIn('has not returned yet', str(error))
        self.assertEqual([], asked)
        # Once the first is through, the next one is tried again.
        go.set()
        give_up = time.monotonic() + rpc_suite.PATIENCE_S
        while bounded._calls.overdue and time.monotonic() < give_up:
            time.sleep(0.01)
        bounded._timeout_s = rpc_suite.PATIENCE_S
        self.assertEqual(4, bounded.run('ask', lambda: 4))
