# SPDX-License-Identifier: Apache-2.0

"""The bus in memory, and a bus that hangs."""

import threading
import time

from kombu.utils import functional
from oslo_config import cfg
import oslo_messaging
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


class DefaultsTestCase(base.BaseTestCase):
    def test_connections_are_tried_again_soon(self):
        conf = cfg.ConfigOpts()
        conf([])
        rpc.get_transport(conf, 'fake://')
        rabbit = conf.oslo_messaging_rabbit
        self.assertEqual(
            rpc.RETRY_S,
            (
                rabbit.rabbit_retry_interval,
                rabbit.rabbit_retry_backoff,
                rabbit.rabbit_interval_max,
            ),
        )
        # As the driver computes its waits.
        waits = functional.fxrange(
            rabbit.rabbit_retry_interval,
            rabbit.rabbit_interval_max + rabbit.rabbit_retry_interval,
            rabbit.rabbit_retry_backoff,
        )
        self.assertEqual(
            rpc.RECONNECT_S, max(waits) + 2 * rabbit.kombu_reconnect_delay
        )
        self.assertEqual(
            rpc.REPLY_WAIT_S, rabbit.kombu_missing_consumer_retry_timeout
        )


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
        self.assertNotIsInstance(error, errors.BusUnavailable)

    def test_what_the_broker_did_not_take(self):
        bounded = rpc.Bounded('agent', rpc_suite.PATIENCE_S)
        for problem in (
            oslo_messaging.MessageDeliveryFailure('refused'),
            oslo_messaging.MessageUndeliverable(None, None, None, None),
        ):

            def fail(problem=problem):
                raise problem

            self.assertRaises(errors.BusUnavailable, bounded.run, 'ask', fail)

    def test_stuck_use_is_not_joined_by_others(self):
        go = threading.Event()
        self.addCleanup(go.set)
        bounded = rpc.Bounded('agent', 0.01)
        error = self.assertRaises(
            errors.BusUnavailable, bounded.run, 'ask', go.wait
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
