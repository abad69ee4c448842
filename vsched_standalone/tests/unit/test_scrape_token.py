# SPDX-License-Identifier: Apache-2.0

"""The commands that make a token for Prometheus, as they are documented."""

import os
import pathlib
import pwd
import stat
import subprocess

import fixtures
from oslotest import base

from vsched_api import app
from vsched_api.tests import base as api_base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_standalone.tests import documentation
from vsched_standalone.tests import monitored_services
from vsched_standalone.tests import tls_services

_FOLDER = '/etc/vsched'
#: Only a hang takes as long.
_TIMEOUT_S = 120


class ScrapeTokenTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def block(self, name):
        """Return a block with its files in the folder of the test."""
        return tls_services.replaced(
            documentation.block(monitored_services.PAGE, name),
            (_FOLDER, str(self.folder)),
        )

    def test_the_commands_make_one_that_is_accepted(self):
        # The user of the service is not there.
        commands = tls_services.replaced(
            self.block('metrics-token'),
            ('chown vsched:', 'chown %s:' % pwd.getpwuid(os.getuid())[0]),
        )
        subprocess.run(
            ['bash', '-e', '-c', commands],
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
        (path,) = self.folder.iterdir()
        self.assertEqual(0o600, stat.S_IMODE(path.stat().st_mode))
        options = self.folder / 'vsched.conf'
        options.write_text(
            '[keystone_authtoken]\n'
            'www_authenticate_uri = http://127.0.0.1:5000\n'
            + self.block('metrics-options')
        )
        conf = api_base.patient(
            database_options.configuration(
                databases.SQLite.make(self), '--config-file', str(options)
            )
        )
        conf.set_override('auth_strategy', 'keystone', 'api')
        served = app.create_app(conf)
        self.addCleanup(served.extensions['vsched'].database.dispose)
        token = path.read_text().strip()
        for given, status in ((token, 200), (token[:-1], 401)):
            with served.test_client().get(
                '/metrics', headers={'Authorization': 'Bearer ' + given}
            ) as answer:
                self.assertEqual(status, answer.status_code)
