# SPDX-License-Identifier: Apache-2.0

"""The collector as it runs, on a bus in memory."""

import threading
from unittest import mock

from vsched_api.collector import service
from vsched_api.db import errors as db_errors
from vsched_api.operations import retention
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc

PATIENCE_S = 60


class TestService(base.TestCase):
    """Started, spoken to, stopped."""

    def setUp(self):
        super().setUp()
        self.transport = rpc.get_transport(self.conf, 'fake://')

    def start(self):
        running = service.Service(self.conf, self.transport, 'one')
        running.start()
        self.addCleanup(running.stop)

    def test_it_stores_what_it_is_told(self):
        (one,) = base.uuids(1)
        self.start()
        bus = collector_rpc.CollectorClient(self.transport, PATIENCE_S)
        report = messages.Report(
            base.HOST, 1, base.NOW, usage=(base.sample(one),)
        )
        self.assertFalse(bus.report(report).duplicate)
        self.assertTrue(bus.report(report).duplicate)
        self.assertEqual(1, len(usage.page(self.database, 10)))
        self.assertEqual(0, bus.overrides(base.HOST).generation)

    def test_a_database_that_is_away(self):
        self.conf.set_override(
            'connection', 'sqlite:////nowhere/at/all', 'database'
        )
        self.start()
        bus = collector_rpc.CollectorClient(self.transport, PATIENCE_S)
        self.assertRaises(
            errors.Unreachable,
            bus.report,
            messages.Report(base.HOST, 1, base.NOW),
        )

    def test_old_rows_are_deleted_again_and_again(self):
        self.conf.set_override('purge_interval_s', 1, 'collector')
        rounds = threading.Semaphore(0)
        failures = [db_errors.DatabaseUnavailable('away'), KeyError('x')]

        def purge(*args):
            rounds.release()
            if failures:
                raise failures.pop()
            return {}

        patch = mock.patch.object(
            retention, 'purge', autospec=True, side_effect=purge
        )
        patch.start()
        self.addCleanup(patch.stop)
        self.start()
        for _ in range(3):
            self.assertTrue(rounds.acquire(timeout=PATIENCE_S))
