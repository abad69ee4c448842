# SPDX-License-Identifier: Apache-2.0

"""The REST service under uWSGI, with the options that are shipped."""

from concurrent import futures
import contextlib
import glob
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse

from prometheus_client import parser
from testtools import content

from vsched_api.tests import base
from vsched_api.tests.functional import process_case
from vsched_lib.contract import errors
from vsched_lib.tests import ports
from vsched_lib.tests import requirements

UWSGI_OPTIONS = os.path.join(
    process_case.ROOT, 'etc', 'vsched', 'vsched-api-uwsgi.ini'
)


class TestUwsgi(process_case.Process):
    """The REST service under uWSGI."""

    def setUp(self):
        super().setUp()
        self.uwsgi = shutil.which('uwsgi') or os.path.join(
            os.path.dirname(sys.executable), 'uwsgi'
        )
        if not os.path.exists(self.uwsgi):
            # The extra api has it.
            if requirements.required():
                self.fail('uwsgi is missing')
            self.skipTest('uwsgi is missing')
        self.port = ports.reserve()

    def request(self, method, path, **body):
        connection = http.client.HTTPConnection(
            '127.0.0.1', self.port, timeout=process_case.PATIENCE_S
        )
        try:
            connection.request(
                method,
                path,
                json.dumps(body) if body else None,
                {'Content-Type': 'application/json'} if body else {},
            )
            answer = connection.getresponse()
            content = answer.read()
            if answer.headers.get_content_type() == 'application/json':
                content = json.loads(content)
            return answer.status, answer.headers, content
        finally:
            connection.close()

    def serve(self):
        """Start it; the process, and what it said."""
        folder = tempfile.mkdtemp(prefix='vsched-test-')
        self.addCleanup(shutil.rmtree, folder)
        self.metrics_folder = os.path.join(folder, 'metrics')
        process = self.start(
            self.uwsgi,
            '--ini',
            UWSGI_OPTIONS,
            '--pythonpath',
            process_case.ROOT,
            env={
                **os.environ,
                'OS_VSCHED_CONFIG_FILES': self.options,
                'VSCHED_API_ADDRESS': '127.0.0.1:%d' % self.port,
                'VSCHED_API_SOCKET': os.path.join(folder, 'uwsgi.sock'),
                'PROMETHEUS_MULTIPROC_DIR': self.metrics_folder,
                'PYTHONWARNINGS': 'ignore',
                **_virtual_environment(),
            },
        )
        return process, self.read_until(process, 'master-start')

    def test_it_serves_until_it_is_asked_to_end(self):
        (one,) = base.uuids(1)
        self.agent().first(one)
        process, said = self.serve()
        self.assertEqual(200, self.request('GET', '/healthcheck')[0])
        status, headers, found = self.request('GET', '/readiness')
        self.assertEqual((200, 'ok'), (status, found['database']))
        self.assertTrue(headers['X-Openstack-Request-Id'])
        status, _, found = self.request(
            'PATCH', '/v1/reservations/' + one, runtime_us=6_000
        )
        self.assertEqual(
            (202, 'pending'), (status, found['reservation']['state'])
        )
        self.assertEqual(
            400,
            self.request('PATCH', '/v1/reservations/' + one, runtime_us=-1)[0],
        )
        body = json.dumps({'mode': 'x' * 70_000}).encode()
        # Sent at once: a pause before the body ends the connection.
        connection = self.connect(
            b'PATCH /v1/reservations/%s HTTP/1.1\r\nHost: localhost\r\n'
            b'Content-Type: application/json\r\n'
            b'Content-Length: %d\r\n\r\n%s' % (one.encode(), len(body), body)
        )
        self.assertIn(b' 413 ', connection.recv(65536))
        link = self.request('GET', '/v1/hosts?limit=1')[2]['links'][0]
        self.assertEqual(
            '127.0.0.1:%d' % self.port,
            urllib.parse.urlsplit(link['href']).netloc,
        )
        said += self.end(process)
        self.assertNotIn('Traceback', said)
        self.assertNotIn('guest:guest', said)

    def test_it_reads_its_options_again(self):
        self.agent().first()
        self.agent('node2').first()
        process, _ = self.serve()
        self.assertEqual(2, len(self.request('GET', '/v1/hosts')[2]['hosts']))
        with open(self.options, 'a') as file:
            file.write('[api]\nmax_limit = 1\n')
        process.send_signal(signal.SIGHUP)
        until = time.monotonic() + process_case.PATIENCE_S
        while len(self.request('GET', '/v1/hosts')[2]['hosts']) != 1:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)
        self.assertIsNone(process.poll())
        self.end(process)

    def scraped(self):
        """Return how many requests for hosts the workers have answered."""
        text = self.request('GET', '/metrics')[2].decode()
        return sum(
            sample.value
            for metric in parser.text_string_to_metric_families(text)
            for sample in metric.samples
            if sample.name == 'vsched_api_requests_total'
            and sample.labels['route'] == '/v1/hosts'
        )

    def check_scrapes(self, made):
        """Expect a number of requests, whichever worker is scraped."""
        # The last ones are counted once their answers are sent.
        until = time.monotonic() + process_case.PATIENCE_S
        while self.scraped() < made:
            self.assertLess(time.monotonic(), until)
        self.assertEqual([made] * 5, [self.scraped() for _ in range(5)])

    def test_a_scrape_has_the_requests_of_all_workers(self):
        self.agent().first()
        self.agent('node2').first()
        process, _ = self.serve()
        with futures.ThreadPoolExecutor(8) as clients:
            # Until both have answered some.
            until, made = time.monotonic() + process_case.PATIENCE_S, 0
            while (
                len(
                    glob.glob(
                        os.path.join(self.metrics_folder, 'counter_*.db')
                    )
                )
                < 2
            ):
                self.assertLess(time.monotonic(), until)
                list(
                    clients.map(
                        lambda _: self.request('GET', '/v1/hosts'), range(20)
                    )
                )
                made += 20
        self.check_scrapes(made)
        # New workers go on where the others have ended.
        with open(self.options, 'a') as file:
            file.write('[api]\nmax_limit = 1\n')
        process.send_signal(signal.SIGHUP)
        until = time.monotonic() + process_case.PATIENCE_S
        while True:
            self.assertLess(time.monotonic(), until)
            made += 1
            if len(self.request('GET', '/v1/hosts')[2]['hosts']) == 1:
                break
        self.check_scrapes(made)
        self.end(process)

    def connect(self, head):
        connection = socket.create_connection(
            ('127.0.0.1', self.port), timeout=process_case.PATIENCE_S
        )
        self.addCleanup(connection.close)
        connection.sendall(head)
        return connection

    def dribble(self, connections, ended):
        """Send a byte on each, again and again."""
        while not ended.wait(0.2):
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.sendall(b'x')

    def test_slow_clients_hold_nobody_up(self):
        (one,) = base.uuids(1)
        self.agent().first(one)
        self.serve()
        slow = [
            self.connect(
                b'GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nX-Slow: '
            )
            for _ in range(25)
        ]
        slow += [
            self.connect(
                b'PATCH /v1/reservations/%s HTTP/1.1\r\nHost: localhost\r\n'
                b'Content-Type: application/json\r\n'
                b'Content-Length: 5000\r\n\r\n' % one.encode()
            )
            for _ in range(25)
        ]
        ended = threading.Event()
        feeding = threading.Thread(target=self.dribble, args=(slow, ended))
        feeding.start()
        self.addCleanup(feeding.join)
        self.addCleanup(ended.set)
        # Longer than a body may take: the first that wait are refused, and
        # others take their place.
        took_s, until = [], time.monotonic() + 15
        while time.monotonic() < until:
            began = time.monotonic()
            for path in ('/healthcheck', '/readiness', '/v1/hosts'):
                self.assertEqual(200, self.request('GET', path)[0])
            took_s.append(time.monotonic() - began)
            time.sleep(0.1)
        self.addDetail('took_s', content.json_content(took_s))
        # Behind slow ones, each would wait for 40 s. A machine that stands
        # still delays some of them.
        self.assertLess(statistics.median(took_s), 30)

    def test_a_body_of_100_mb_is_answered(self):
        self.serve()
        head = (
            b'POST /v1/reservations HTTP/1.1\r\nHost: localhost\r\n'
            b'Content-Type: application/json\r\n'
            b'Content-Length: 100000000\r\n'
        )
        # A client that asks first.
        connection = self.connect(head + b'Expect: 100-continue\r\n\r\n')
        self.assertIn(b' 413 ', self.answer(connection))
        # One that sends all of it, and listens meanwhile: what it sends is
        # read for two seconds only.
        connection = self.connect(head + b'\r\n')
        sender = threading.Thread(target=self.send, args=(connection, 100))
        sender.start()
        self.addCleanup(sender.join)
        found = connection.recv(65536)
        self.assertIn(b' 413 ', found)
        while errors.Code.TOO_LARGE.encode() not in found:
            chunk = connection.recv(65536)
            self.assertNotEqual(b'', chunk, found)
            found += chunk

    def send(self, connection, megabytes):
        with contextlib.suppress(OSError):
            for _ in range(megabytes):
                connection.sendall(b' ' * 1_000_000)

    def test_a_client_that_sends_all_before_it_listens_is_answered(self):
        self.serve()
        until = time.monotonic() + process_case.PATIENCE_S
        while True:
            began = time.monotonic()
            try:
                found = self.upload()
                break
            except ConnectionError:
                # The service drops a body for two seconds, and as long as
                # nothing pauses for half a second. Whoever was quicker must
                # have been answered; others try again.
                if time.monotonic() - began < 0.5:
                    raise
                self.assertLess(time.monotonic(), until)
        self.assertIn(b' 413 ', found)
        self.assertIn(errors.Code.TOO_LARGE.encode(), found)

    def upload(self):
        """Send four megabytes, and only then read the answer."""
        connection = self.connect(
            b'POST /v1/reservations HTTP/1.1\r\nHost: localhost\r\n'
            b'Content-Type: application/json\r\n'
            b'Content-Length: 4000000\r\n\r\n'
        )
        for _ in range(4):
            connection.sendall(b' ' * 1_000_000)
        return self.answer(connection)

    def test_long_headers_are_answered(self):
        self.serve()
        connection = self.connect(
            b'GET /v1/hosts HTTP/1.1\r\nHost: localhost\r\nX-Long: %s'
            b'\r\n\r\n' % (b'x' * 20_000)
        )
        self.assertIn(b' 431 ', self.answer(connection))

    def answer(self, connection):
        found = b''
        while chunk := connection.recv(65536):
            found += chunk
        return found


def _virtual_environment():
    if sys.prefix == sys.base_prefix:
        return {}
    return {'VIRTUAL_ENV': sys.prefix, 'UWSGI_VIRTUALENV': sys.prefix}
