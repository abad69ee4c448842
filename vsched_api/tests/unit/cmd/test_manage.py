# SPDX-License-Identifier: Apache-2.0

"""What operators do to the database."""

import contextlib
import io
import json

import fixtures
from oslotest import base

from vsched_api.cmd import manage
from vsched_api.db import migration
from vsched_api.rest import openapi_document
from vsched_api.tests import databases


class TestManage(base.BaseTestCase):
    """Each command, on a file."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir())
        self.file = self.folder.join('vsched.conf')
        self.use(databases.SQLite.make(self, migrated=False))

    def use(self, url):
        with open(self.file, 'w') as file:
            file.write('[database]\nconnection = %s\n' % url)

    def run_command(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = manage.main(['--config-file', self.file, *args])
        return status, out.getvalue(), err.getvalue()

    def test_sync_and_version(self):
        status, out, err = self.run_command('db', 'version')
        self.assertEqual((1, 'none\n'), (status, out))
        self.assertIn('vsched-manage db sync', err)
        self.assertEqual(0, self.run_command('db', 'sync')[0])
        self.assertEqual(
            (0, migration.newest() + '\n', ''),
            self.run_command('db', 'version'),
        )
        self.assertEqual(0, self.run_command('db', 'sync')[0])

    def test_purge(self):
        self.run_command('db', 'sync')
        status, out, _ = self.run_command('db', 'purge')
        self.assertEqual(0, status)
        self.assertIn('usage: 0 deleted', out)

    def test_the_document_of_the_api(self):
        # The tables do not exist: it needs none.
        status, out, _ = self.run_command('openapi')
        self.assertEqual(0, status)
        self.assertEqual(openapi_document.document(), json.loads(out))

    def test_a_database_that_is_away(self):
        self.use('postgresql+psycopg2://me:1234@127.0.0.1:1/x')
        for command in ('sync', 'version', 'purge'):
            status, out, err = self.run_command('db', command)
            self.assertEqual((1, ''), (status, out))
            self.assertIn('does not answer', err)
            self.assertNotIn('1234', err)

    def test_a_connection_that_is_none(self):
        self.use('somewhere, secret')
        status, out, err = self.run_command('db', 'sync')
        self.assertEqual((1, ''), (status, out))
        self.assertIn('[database] connection is no URL', err)
        self.assertNotIn('secret', err)

    def test_an_option_that_is_no_number(self):
        with open(self.file, 'a') as file:
            file.write('[DEFAULT]\nlog_color = perhaps\n')
        problem = self.assertRaises(
            SystemExit, self.run_command, 'db', 'version'
        )
        self.assertIn('vsched-manage: ', str(problem))
        self.assertIn('log_color', str(problem))

    def test_a_command_nobody_knows(self):
        self.assertRaises(SystemExit, self.run_command, 'db', 'drop')
        self.assertRaises(SystemExit, self.run_command)
