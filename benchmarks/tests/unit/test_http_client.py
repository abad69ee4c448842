# SPDX-License-Identifier: Apache-2.0

import http.server
import threading
import time
from unittest import mock

from oslotest import base

from benchmarks import http_client


class ResponseTestCase(base.BaseTestCase):
    WHOLE = b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'

    def test_in_any_pieces(self):
        for cut in range(1, len(self.WHOLE)):
            response = http_client.Response()
            response.feed(self.WHOLE[:cut])
            self.assertFalse(response.complete, cut)
            response.feed(self.WHOLE[cut:])
            self.assertTrue(response.complete, cut)
            self.assertEqual(200, response.status)

    def test_what_is_no_response(self):
        for data in (
            self.WHOLE + b'more',
            b'HTTP/1.1 200 OK\r\n\r\n',
            b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
            b'HTTP/1.1 what\r\nContent-Length: 5\r\n\r\n',
            b'220 ready\xff\r\n\r\n',
        ):
            self.assertRaises(
                (ValueError, LookupError), http_client.Response().feed, data
            )


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    #: Each path that was asked for, and the connection's port.
    asked: list[tuple[str, int]] = []
    #: Whether the test has ended.
    ended = threading.Event()

    def do_GET(self):
        self.asked.append((self.path, self.client_address[1]))
        if self.path == '/slow':
            time.sleep(0.05)
        if self.path == '/never':
            self.ended.wait(60)
        self.send_response(404 if self.path == '/none' else 200)
        self.send_header('Content-Length', '3')
        self.end_headers()
        self.wfile.write(b'abc')

    def log_message(self, *_):
        pass


class LoopTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        _Handler.asked = []
        _Handler.ended = threading.Event()
        self.addCleanup(_Handler.ended.set)
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        # No answer is lost, however long a busy machine takes.
        self.patch(http_client, 'PATIENCE_S', 60.0)
        connect = http_client.socket.create_connection
        patch = mock.patch.object(
            http_client.socket,
            'create_connection',
            lambda address, timeout: connect(server.server_address, timeout),
        )
        patch.start()
        self.addCleanup(patch.stop)

    def run_task(self, *paths, interrupted=lambda: False, **fields):
        return http_client.Loop(
            http_client.Task('127.0.0.1', paths, **fields), interrupted
        ).run()

    def test_all_requests_are_answered(self):
        found = self.run_task('/a', '/none', requests=20, sessions=3)
        self.assertEqual(20, len(found))
        self.assertEqual(20, len(_Handler.asked))
        self.assertEqual({(0, 200), (1, 404)}, {(p, s) for p, _, s in found})
        self.assertEqual(3, len({port for _, port in _Handler.asked}))

    def test_the_same_seed_asks_the_same(self):
        asked = []
        for _ in range(2):
            _Handler.asked = []
            self.run_task('/a', '/b', '/c', requests=9, seed=4)
            asked.append([path for path, _ in _Handler.asked])
        self.assertEqual(*asked)

    def test_time_counts_from_when_a_request_is_due(self):
        # Each takes 50 ms and is due 10 ms after the one before.
        found = self.run_task('/slow', requests=4, interval_s=0.01)
        waits_ms = [ms for _, ms, _ in found]
        self.assertEqual(sorted(waits_ms), waits_ms)
        self.assertLess(3 * 40, waits_ms[-1])

    def test_until_interrupted(self):
        found = self.run_task(
            '/a', interrupted=lambda: len(_Handler.asked) > 10
        )
        self.assertLessEqual(10, len(found))

    def test_lost_answer(self):
        with mock.patch.object(http_client, 'PATIENCE_S', 0.02):
            found = self.run_task('/never', requests=2)
        self.assertEqual([(0, 20.0, 0)] * 2, found)

    def test_a_request_that_cannot_be_sent_ends_its_connection(self):
        begin, connections = http_client._Session.begin, []

        def fail_once(session, path, due_s):
            connections.append(session.channel)
            begin(session, path, due_s)
            if len(connections) == 2:
                raise BlockingIOError

        with mock.patch.object(http_client._Session, 'begin', fail_once):
            found = self.run_task('/a', requests=3)
        self.assertEqual([200, 0, 200], [status for _, _, status in found])
        self.assertEqual(
            [True, False, True], [one is None for one in connections]
        )
