# SPDX-License-Identifier: Apache-2.0

"""Taking requests in."""

import io
import json
import os
import socket
import threading

from vsched_api.rest import intake
from vsched_api.tests import base
from vsched_lib.contract import errors

Code = errors.Code


class Slow(io.RawIOBase):
    """A body that needs a second of a made-up clock for each byte."""

    def __init__(self, body, clock):
        super().__init__()
        self._body = io.BytesIO(body)
        self._clock = clock

    def read(self, size=-1):
        self._clock[0] += size
        return self._body.read(size)


class TestIntake(base.TestCase):
    """Bodies that are too long, too slow, or too many."""

    def setUp(self):
        super().setUp()
        self.clock = [0.0]
        self.taken = []
        self.intake = intake.Intake(
            self.application, self.conf, clock=lambda: self.clock[0]
        )

    def application(self, environ, start_response):
        self.taken.append(environ['wsgi.input'].read())
        start_response('200 OK', [])
        return [b'']

    def send(self, body=b'', **environ):
        """The status, the headers, and the code of an error."""
        found = {}

        def start_response(status, headers):
            found.update(status=int(status.split()[0]), headers=dict(headers))

        content = b''.join(
            self.intake(
                {
                    'REQUEST_METHOD': 'PATCH',
                    'PATH_INFO': '/',
                    'QUERY_STRING': '',
                    'wsgi.input': io.BytesIO(body),
                    'openstack.request_id': 'req-1',
                    **environ,
                },
                start_response,
            )
        )
        code = None
        if found['status'] != 200:
            (error,) = json.loads(content)['errors']
            self.assertEqual(
                (found['status'], 'req-1'),
                (error['status'], error['request_id']),
            )
            code = error['code']
        return found['status'], found['headers'], code

    def test_a_body_is_read_whole(self):
        self.assertEqual(200, self.send(b'{}', CONTENT_LENGTH='2')[0])
        self.assertEqual(200, self.send(b'{}', CONTENT_LENGTH='')[0])
        self.assertEqual([b'{}', b'{}'], self.taken)

    def test_a_slow_body_is_not_waited_for(self):
        self.conf.set_override('body_timeout_s', 5.0, 'api')
        self.assertEqual(
            200,
            self.send(
                CONTENT_LENGTH='5',
                **{'wsgi.input': Slow(b'12345', self.clock)},
            )[0],
        )
        status, _, code = self.send(
            CONTENT_LENGTH='9',
            **{'wsgi.input': Slow(b'123456789', self.clock)},
        )
        self.assertEqual((408, Code.REQUEST_TIMEOUT), (status, code))
        self.assertEqual([b'12345'], self.taken)

    def test_what_the_server_raises_for_a_slow_body(self):
        class Source:
            def read(self, size):
                raise OSError('timeout during read')

        self.assertEqual(
            408, self.send(CONTENT_LENGTH='9', **{'wsgi.input': Source()})[0]
        )

    def test_a_body_that_ends_too_early(self):
        self.assertEqual(
            (400, Code.BAD_REQUEST), self.send(b'12', CONTENT_LENGTH='3')[::2]
        )

    def test_only_some_requests_may_wait_for_their_body(self):
        begun, go_on = threading.Barrier(5), threading.Event()

        class Source:
            def read(self, size):
                begun.wait()
                go_on.wait()
                return b'x'

        threads = [
            threading.Thread(
                target=self.send,
                kwargs={'CONTENT_LENGTH': '1', 'wsgi.input': Source()},
            )
            for _ in range(self.conf.api.max_waiting_bodies)
        ]
        for thread in threads:
            thread.start()
            self.addCleanup(thread.join)
        self.addCleanup(go_on.set)
        begun.wait()
        status, headers, code = self.send(b'{}', CONTENT_LENGTH='2')
        self.assertEqual(
            (503, Code.REQUESTS_WAITING, '5'),
            (status, code, headers['Retry-After']),
        )
        self.assertEqual(200, self.send()[0])
        go_on.set()
        for thread in threads:
            thread.join()
        self.assertEqual(200, self.send(b'{}', CONTENT_LENGTH='2')[0])

    def test_a_long_body_is_refused_before_it_is_read(self):
        near, far = socket.socketpair()
        self.addCleanup(near.close)
        self.addCleanup(far.close)
        far.sendall(b'x' * 1000)
        far.shutdown(socket.SHUT_WR)
        with os.fdopen(near.detach(), 'rb', 0) as source:
            status, headers, code = self.send(
                CONTENT_LENGTH='100000000', **{'wsgi.input': source}
            )
            # What came is dropped, for the client to get the answer.
            self.assertEqual(b'', source.read(1))
        self.assertEqual((413, Code.TOO_LARGE), (status, code))
        self.assertEqual('close', headers['Connection'])
        self.assertEqual([], self.taken)

    def test_lengths_that_are_none(self):
        for text in ('-1', '1e3', '٣', ' 1'):
            self.assertEqual(
                (400, Code.BAD_REQUEST), self.send(CONTENT_LENGTH=text)[::2]
            )
        self.assertEqual(413, self.send(CONTENT_LENGTH='9' * 5000)[0])
        self.assertEqual(
            (411, Code.LENGTH_REQUIRED),
            self.send(HTTP_TRANSFER_ENCODING='chunked')[::2],
        )

    def test_long_headers(self):
        for name in ('HTTP_X_COLOUR', 'QUERY_STRING', 'PATH_INFO'):
            self.assertEqual(
                (431, Code.HEADERS_TOO_LARGE),
                self.send(**{name: 'x' * 20_000})[::2],
            )

    def test_a_query_that_is_no_text(self):
        """Bytes, as a server hands them over."""
        for query in ('limit=\xff', '\xff=1', 'a=\xed\xa0\x80', '\xe9'):
            self.assertEqual(
                (400, Code.BAD_REQUEST),
                self.send(QUERY_STRING=query)[::2],
                query,
            )
        for query in ('', 'a=%FF', 'a=\xc3\xa9'):
            self.assertEqual(200, self.send(QUERY_STRING=query)[0], query)

    def test_a_body_that_the_server_has_read_is_left(self):
        self.assertEqual(
            200,
            self.send(
                b'{}',
                **{
                    'wsgi.input_terminated': True,
                    'HTTP_TRANSFER_ENCODING': 'chunked',
                },
            )[0],
        )
        self.assertEqual([b'{}'], self.taken)
