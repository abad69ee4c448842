# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The services as operators run them: processes with options in files."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.parse

from vsched_api.operations import hosts
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import rabbitmq

PATIENCE_S = 60
ROOT = os.path.abspath(os.path.join(
    os.path.dirname(__file__), '..', '..', '..'))
UWSGI_OPTIONS = os.path.join(ROOT, 'etc', 'vsched', 'vsched-api-uwsgi.ini')


class Process(base.TestCase):
    """A test that starts processes."""

    kind = databases.PostgreSQL

    def setUp(self):
        super().setUp()
        self.bus = rabbitmq.make_vhost(self)
        self.options = databases.write(
            self, '[DEFAULT]\ntransport_url = %s\n'
            '[api]\nauth_strategy = noauth\n'
            '[database]\nconnection = %s\n' % (
                self.bus, self.conf.database.connection))

    def start(self, *command, **more):
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            **more)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def read_until(self, process, text):
        """What it says, up to and with a line that has the text."""
        lines = []
        for line in process.stdout:
            lines.append(line)
            if text in line:
                return ''.join(lines)
        self.fail('it ended: ' + ''.join(lines))

    def end(self, process):
        """Ask it to end; what it still says."""
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(0, process.returncode, said)
        return said


class TestCollector(Process):
    """vsched-collector."""

    def test_it_stores_reports_until_it_is_asked_to_end(self):
        process = self.start(
            sys.executable, '-W', 'ignore', '-m',
            'vsched_api.cmd.collector', '--config-file', self.options)
        said = self.read_until(process, 'takes reports')
        transport = rpc.get_transport(self.conf, self.bus)
        self.addCleanup(transport.cleanup)
        reply = rpc.CollectorClient(transport, PATIENCE_S).report(
            messages.Report(base.HOST, 1, base.NOW))
        self.assertFalse(reply.duplicate)
        said += self.end(process)
        self.assertIn('stops', said)
        self.assertNotIn('Traceback', said)
        self.assertNotIn('guest:guest', said)
        self.assertEqual(
            1, hosts.get(self.database, base.HOST, 0, 1).last_batch)

    def test_it_can_be_asked_to_end_while_its_broker_is_away(self):
        self.options = databases.write(
            self, '[DEFAULT]\ntransport_url = rabbit://127.0.0.1:1\n'
            '[database]\nconnection = %s\n' % (
                self.conf.database.connection))
        process = self.start(
            sys.executable, '-W', 'ignore', '-m',
            'vsched_api.cmd.collector', '--config-file', self.options)
        self.read_until(process, 'Connection refused')
        self.end(process)


class TestUwsgi(Process):
    """The REST service under uWSGI."""

    def setUp(self):
        super().setUp()
        self.uwsgi = shutil.which('uwsgi') or os.path.join(
            os.path.dirname(sys.executable), 'uwsgi')
        if not os.path.exists(self.uwsgi):
            self.skipTest('uwsgi is missing')
        with socket.create_server(('127.0.0.1', 0)) as probe:
            self.port = probe.getsockname()[1]

    def request(self, method, path, **body):
        connection = http.client.HTTPConnection(
            '127.0.0.1', self.port, timeout=PATIENCE_S)
        try:
            connection.request(
                method, path, json.dumps(body) if body else None,
                {'Content-Type': 'application/json'} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.headers, json.loads(answer.read())
        finally:
            connection.close()

    def test_it_serves_until_it_is_asked_to_end(self):
        one, = base.uuids(1)
        self.agent().first(one)
        process = self.start(
            self.uwsgi, '--ini', UWSGI_OPTIONS,
            '--pythonpath', ROOT,
            env={**os.environ, 'OS_VSCHED_CONFIG_FILES': self.options,
                 'VSCHED_API_ADDRESS': '127.0.0.1:%d' % self.port,
                 'PYTHONWARNINGS': 'ignore',
                 **_virtual_environment()})
        said = self.read_until(process, 'master-start')
        status, headers, found = self.request('GET', '/healthcheck')
        self.assertEqual((200, 'ok'), (status, found['database']))
        self.assertTrue(headers['X-Openstack-Request-Id'])
        status, _, found = self.request(
            'PATCH', '/v1/reservations/' + one, runtime_us=6_000)
        self.assertEqual((202, 'pending'), (
            status, found['reservation']['state']))
        self.assertEqual(400, self.request(
            'PATCH', '/v1/reservations/' + one, runtime_us=-1)[0])
        self.assertEqual(413, self.request(
            'PATCH', '/v1/reservations/' + one, mode='x' * 70_000)[0])
        link = self.request('GET', '/v1/hosts?limit=1')[2]['links'][0]
        self.assertEqual(
            '127.0.0.1:%d' % self.port,
            urllib.parse.urlsplit(link['href']).netloc)
        said += self.end(process)
        self.assertNotIn('Traceback', said)
        self.assertNotIn('guest:guest', said)


def _virtual_environment():
    if sys.prefix == sys.base_prefix:
        return {}
    return {'VIRTUAL_ENV': sys.prefix, 'UWSGI_VIRTUALENV': sys.prefix}
