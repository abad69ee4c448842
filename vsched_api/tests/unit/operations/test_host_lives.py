# SPDX-License-Identifier: Apache-2.0

"""Clocks of hosts, and hosts that go, on SQLite; who Nova lacks."""

import http.server
import json
import threading
import urllib.parse

from keystoneauth1 import loading

from vsched_api.operations import host_deletion
from vsched_api.tests import base
from vsched_api.tests.suites import host_lives


class TestClocks(host_lives.Clocks, base.TestCase):
    """The suite, on a file."""


class TestDeletion(host_lives.Deletion, base.TestCase):
    """The suite, on a file."""


class TestAbsence(base.TestCase):
    """Nova's API is a server of our own; it knows one compute service."""

    def setUp(self):
        super().setUp()
        asked = self.asked = []
        known = {'node2'}
        self.status = 200
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                query = urllib.parse.parse_qs(url.query)
                asked.append((url.path, *query.get('host', ())))
                body = json.dumps(
                    {
                        'services': [
                            {'host': name}
                            for name in known
                            if [name] == query.get('host')
                        ]
                    }
                ).encode()
                self.send_response(test.status)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = 'http://127.0.0.1:%d' % server.server_port
        self.conf.set_override('auth_type', 'admin_token', 'nova')
        # As loading the plugin does, later.
        self.conf.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'), 'nova'
        )
        self.conf.set_override('endpoint', url, 'nova')
        self.conf.set_override('token', 'secret', 'nova')
        for name in ('node1', 'node2', 'node3'):
            (one,) = base.uuids(1)
            self.agent(name).first(one)

    def hosts(self):
        return [
            one['name'] for one in self.client().get('/v1/hosts').json['hosts']
        ]

    def sweep(self):
        return host_deletion.delete_absent(self.database, self.conf, self.now)

    def test_who_is_absent_and_unknown_to_nova(self):
        self.assertEqual(0, self.sweep())
        self.now += 29 * 86_400
        self.assertEqual(0, self.sweep())
        self.assertEqual([], self.asked)
        self.now += 2 * 86_400
        self.conf.set_override('absent_host_days', 0, 'collector')
        self.assertEqual(0, self.sweep())
        self.conf.clear_override('absent_host_days', 'collector')
        self.status = 500
        self.assertEqual(0, self.sweep())
        self.assertEqual(['node1', 'node2', 'node3'], self.hosts())
        self.status = 200
        self.assertEqual(2, self.sweep())
        self.assertEqual(['node2'], self.hosts())
        self.assertEqual(0, self.sweep())
