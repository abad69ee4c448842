# SPDX-License-Identifier: Apache-2.0

"""The collector as it runs, on a bus in memory."""

import threading
from unittest import mock

from vsched_api.collector import service
from vsched_api.db import errors as db_errors
from vsched_api.operations import reports
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


class Server:
    """Stands for a server on the bus whose broker comes when it is let.

    The fields say what was called.
    """

    def __init__(self):
        self.calls = []
        self.starts = threading.Event()
        self.connects = threading.Event()
        self.stopped = threading.Event()

    def start(self):
        self.starts.set()
        self.connects.wait(PATIENCE_S)
        self.calls.append('start')

    def stop(self):
        self.calls.append('stop')

    def wait(self):
        self.calls.append('wait')
        self.stopped.set()


class TestStop(base.TestCase):
    """What a stop waits for."""

    def setUp(self):
        super().setUp()
        self.transport = rpc.get_transport(self.conf, 'fake://')

    def service(self):
        made = service.Service(self.conf, self.transport, 'one')
        # Nothing is left behind by a test that fails.
        self.addCleanup(made.stop)
        return made

    def service_of(self, server):
        with mock.patch.object(
            rpc, 'get_server', autospec=True, return_value=server
        ):
            made = self.service()
        self.addCleanup(server.connects.set)
        return made

    def stop(self, running):
        """Stop it in a thread; returns the thread."""
        thread = threading.Thread(target=running.stop)
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def test_reports_that_were_accepted_are_answered(self):
        (one,) = base.uuids(1)
        arrived, goes_on = threading.Event(), threading.Event()
        self.addCleanup(goes_on.set)
        real = reports.Storage.store

        def store(*args):
            arrived.set()
            goes_on.wait(PATIENCE_S)
            return real(*args)

        patch = mock.patch.object(
            reports.Storage, 'store', autospec=True, side_effect=store
        )
        patch.start()
        self.addCleanup(patch.stop)
        running = self.service()
        running.start()
        replies = []
        bus = collector_rpc.CollectorClient(self.transport, PATIENCE_S)
        client = threading.Thread(
            target=lambda: replies.append(
                bus.report(
                    messages.Report(
                        base.HOST, 1, base.NOW, usage=(base.sample(one),)
                    )
                )
            )
        )
        client.start()
        self.assertTrue(arrived.wait(PATIENCE_S))
        stopping = self.stop(running)
        stopping.join(0.1)
        self.assertTrue(stopping.is_alive())
        goes_on.set()
        stopping.join(PATIENCE_S)
        client.join(PATIENCE_S)
        self.assertEqual([False], [one.duplicate for one in replies])
        self.assertEqual(1, len(usage.page(self.database, 10)))

    def test_a_server_that_is_starting_is_stopped(self):
        server = Server()
        running = self.service_of(server)
        running.start()
        self.assertTrue(server.starts.wait(PATIENCE_S))
        with mock.patch.object(service, 'CONNECT_TIMEOUT_S', PATIENCE_S):
            stopping = self.stop(running)
            server.connects.set()
            stopping.join(PATIENCE_S)
        self.assertEqual(['start', 'stop', 'wait'], server.calls[:3])

    def test_a_broker_that_comes_later_gives_it_no_requests(self):
        server = Server()
        running = self.service_of(server)
        running.start()
        self.assertTrue(server.starts.wait(PATIENCE_S))
        with mock.patch.object(service, 'CONNECT_TIMEOUT_S', 0.01):
            running.stop()
        self.assertEqual([], server.calls)
        server.connects.set()
        self.assertTrue(server.stopped.wait(PATIENCE_S))
        self.assertEqual(['start', 'stop', 'wait'], server.calls)

    def test_one_that_did_not_start_has_nothing_to_wait_for(self):
        server = Server()
        self.service_of(server).stop()
        self.assertEqual([], server.calls)

    def test_parts_are_stopped_also_when_one_fails(self):
        server = Server()
        running = self.service_of(server)
        server.connects.set()
        running.start()
        with (
            mock.patch.object(
                server, 'stop', autospec=True, side_effect=OSError('broker')
            ),
            mock.patch.object(
                running._tasks, 'stop', autospec=True
            ) as tasks_stop,
            mock.patch.object(
                running._collector.database, 'dispose', autospec=True
            ) as dispose,
        ):
            self.assertRaises(OSError, running.stop)
        tasks_stop.assert_called_once_with()
        dispose.assert_called_once_with()
