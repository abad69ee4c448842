# SPDX-License-Identifier: Apache-2.0

"""Who may read ``/metrics``."""

import os

import fixtures
from keystonemiddleware import fixture as keystone_fixture

from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_lib.tests import bus_keys

TOKEN = 'b1946ac92492d2347c6235b4d2611184'
OTHER_TOKEN = '591785b794601e212b260e25925636fd'


class TestScrapeToken(base.TestCase):
    """Prometheus has a token of its own beside keystone's."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        options = os.path.join(self.folder, 'vsched.conf')
        with open(options, 'w') as file:
            file.write(
                '[keystone_authtoken]\n'
                'www_authenticate_uri = http://127.0.0.1:5000\n'
                '[oslo_policy]\n'
                'policy_file = %s/policy.yaml\n' % self.folder
            )
        self.conf = base.patient(
            database_options.configuration(
                self.conf.database.connection, '--config-file', options
            )
        )
        self.conf.set_override('auth_strategy', 'keystone', 'api')
        self.useFixture(keystone_fixture.AuthTokenFixture())
        self.log = self.useFixture(fixtures.FakeLogger())

    def use(self, text, mode=0o600):
        path = bus_keys.write(self.folder, 'token', text, mode)
        self.conf.set_override('token_file', path, 'metrics')
        return path

    def status(self, client, header=None, path='/metrics'):
        return client.get(
            path, headers={} if header is None else {'Authorization': header}
        ).status_code

    def test_a_token(self):
        self.use(TOKEN + '\n')
        client = self.client()
        self.assertEqual(200, self.status(client, 'Bearer ' + TOKEN))
        # The scheme has no case.
        self.assertEqual(200, self.status(client, 'bearer ' + TOKEN))
        for header in (
            None,
            '',
            TOKEN,
            'Bearer',
            'Bearer ',
            'Bearer ' + OTHER_TOKEN,
            'Bearer ' + TOKEN[:-1],
            'Bearer ' + TOKEN + 'x',
            'Bearer \N{LATIN SMALL LETTER E WITH ACUTE}',
            'Basic ' + TOKEN,
        ):
            self.assertEqual(401, self.status(client, header), header)
        self.assertNotIn(TOKEN, self.log.output)

    def test_it_is_for_metrics_only(self):
        self.use(TOKEN)
        client = self.client()
        for path in ('/v1/hosts', '/v1/usage', '/v1/snapshot'):
            self.assertEqual(
                401, self.status(client, 'Bearer ' + TOKEN, path), path
            )

    def test_two_tokens_while_one_is_replaced(self):
        path = self.use('%s\n%s\n' % (OTHER_TOKEN, TOKEN))
        client = self.client()
        for token in (TOKEN, OTHER_TOKEN):
            self.assertEqual(200, self.status(client, 'Bearer ' + token))
        os.unlink(path)
        self.use(OTHER_TOKEN)
        self.assertEqual(401, self.status(client, 'Bearer ' + TOKEN))
        self.assertEqual(200, self.status(client, 'Bearer ' + OTHER_TOKEN))

    def test_without_a_file(self):
        client = self.client()
        self.assertEqual(401, self.status(client, 'Bearer ' + TOKEN))
        self.assertEqual(401, self.status(client, 'Bearer '))

    def test_a_file_that_cannot_be_used(self):
        for text, mode, word in (
            (TOKEN, 0o644, 'chmod 0600'),
            ('', 0o600, '0 lines'),
            ('short', 0o600, '32 to 512'),
        ):
            self.use(text, mode)
            client = self.client()
            for header in ('Bearer ' + TOKEN, 'Bearer ' + text):
                self.assertEqual(401, self.status(client, header))
            self.assertIn(word, self.log.output)
        self.conf.set_override('token_file', '/nowhere', 'metrics')
        self.assertEqual(401, self.status(self.client(), 'Bearer ' + TOKEN))

    def test_the_policy_still_holds(self):
        self.use(TOKEN)
        with open(os.path.join(self.folder, 'policy.yaml'), 'w') as file:
            file.write('"vsched:metrics:show": "@"\n')
        self.assertEqual(200, self.status(self.client()))
