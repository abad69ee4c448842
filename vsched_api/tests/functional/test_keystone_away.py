# SPDX-License-Identifier: Apache-2.0

"""The real keystonemiddleware, and a keystone that is not there."""

import http.server
import json
import socket
import threading
import time

from keystoneauth1 import fixture as keystoneauth_fixture

from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import errors
from vsched_lib.tests import ports

GOOD = 'good-token'
#: Only a hang takes longer, in seconds.
PATIENCE_S = 60

_OPTIONS = """
[api]
auth_strategy = keystone
retry_after_s = %(retry_after_s)d
[keystone_authtoken]
auth_url = http://127.0.0.1:%(port)d
auth_type = password
username = vsched
password = SECRET
project_name = service
user_domain_name = Default
project_domain_name = Default
http_connect_timeout = %(timeout_s)d
%(more)s
[database]
connection = %(connection)s
"""


def _token(url):
    """A token of an administrator, and a catalog with keystone in it."""
    token = keystoneauth_fixture.V3Token()
    token.set_project_scope()
    token.add_role('admin')
    token.add_service('identity').add_standard_endpoints(
        public=url, internal=url, admin=url
    )
    return token


class _Keystone(http.server.BaseHTTPRequestHandler):
    """As much of keystone as checking a token takes."""

    def do_POST(self):
        self._answer(201, _token(self._url()), {'X-Subject-Token': 'own'})

    def do_GET(self):
        if not self.path.startswith('/v3/auth/tokens'):
            self._answer(
                300,
                {
                    'versions': {
                        'values': [
                            {
                                'id': 'v3.14',
                                'status': 'stable',
                                'media-types': [],
                                'links': [
                                    {
                                        'rel': 'self',
                                        'href': self._url() + '/v3/',
                                    }
                                ],
                            }
                        ]
                    }
                },
                {},
            )
        elif self.headers['X-Subject-Token'] == GOOD:
            self._answer(200, _token(self._url()), {'X-Subject-Token': GOOD})
        else:
            self._answer(404, {'error': {'code': 404, 'message': 'no'}}, {})

    def _url(self):
        return 'http://127.0.0.1:%d' % self.server.server_port

    def _answer(self, status, body, headers):
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            **headers,
            'Content-Type': 'application/json',
            'Content-Length': str(len(content)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Say nothing."""


class TestKeystoneAway(base.TestCase):
    """503 and when to come back, never "a valid token is needed"."""

    def setUp(self):
        super().setUp()
        self.agent().first()
        self.port = ports.reserve()

    def http(self, more='', retry_after_s=5, timeout_s=PATIENCE_S):
        options = databases.write(
            self,
            _OPTIONS
            % {
                'port': self.port,
                'more': more,
                'timeout_s': timeout_s,
                'retry_after_s': retry_after_s,
                'connection': self.conf.database.connection,
            },
        )
        self.conf = base.patient(
            database_options.configuration(
                self.conf.database.connection, '--config-file', options
            )
        )
        self.conf.set_override('auth_strategy', 'keystone', 'api')
        return self.client()

    def serve(self):
        """Let keystone answer."""
        server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', self.port), _Keystone
        )
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)

    def get(self, client, token, path='/v1/hosts'):
        return client.get(path, headers={'X-Auth-Token': token})

    def away(self, client, retry_after_s=5):
        answer = self.get(client, GOOD)
        self.assertEqual(503, answer.status_code, answer.text)
        self.assertEqual(str(retry_after_s), answer.headers['Retry-After'])
        (problem,) = answer.json['errors']
        self.assertEqual(errors.Code.IDENTITY_UNAVAILABLE, problem['code'])
        self.assertNotIn('SECRET', answer.text)
        # What needs no token is served, and no token is still a 401.
        for path in ('/', '/readiness', '/healthcheck'):
            self.assertEqual(200, self.get(client, GOOD, path).status_code)
        answer = client.get('/v1/hosts')
        self.assertEqual(401, answer.status_code)
        self.assertIn('WWW-Authenticate', answer.headers)

    def test_nothing_listens(self):
        self.away(self.http())

    def test_it_hangs(self):
        # The kernel takes the connection, and nobody answers.
        with socket.create_server(('127.0.0.1', self.port)):
            self.away(self.http(timeout_s=1))

    def test_it_is_asked_again_when_it_is_back(self):
        """By the same service, which was not restarted."""
        client = self.http(retry_after_s=1)
        self.away(client, retry_after_s=1)
        self.serve()
        give_up = time.monotonic() + PATIENCE_S
        while (status := self.get(client, GOOD).status_code) != 200:
            # Never a refusal of the token.
            self.assertEqual(503, status)
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.1)
        self.assertEqual(401, self.get(client, 'bad-token').status_code)

    def test_a_token_that_it_refuses(self):
        self.serve()
        client = self.http()
        answer = self.get(client, 'bad-token')
        self.assertEqual(401, answer.status_code)
        (problem,) = answer.json['errors']
        self.assertEqual(errors.Code.UNAUTHENTICATED, problem['code'])
        self.assertEqual(200, self.get(client, GOOD).status_code)
