# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage host-key`` and ``master-key``."""

import os

import fixtures
import sqlalchemy as sa

from vsched_api.cmd import manage
from vsched_api.db import models
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys
from vsched_lib.tests import bus_keys


class TestHostKey(base.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.master = os.path.join(self.folder, 'master.key')
        self.assertEqual(0, manage.main(['master-key', 'create', self.master]))
        self.options = databases.write(
            self,
            '[database]\nconnection = %s\n[bus]\n'
            'master_key_file = %s\n'
            % (self.conf.database.connection, self.master),
        )

    def run_command(self, *words):
        """Exit status, standard output and standard error."""
        said = [
            self.useFixture(fixtures.StringStream(name))
            for name in ('out', 'err')
        ]
        with (
            fixtures.MonkeyPatch('sys.stdout', said[0].stream),
            fixtures.MonkeyPatch('sys.stderr', said[1].stream),
        ):
            status = manage.main(['--config-file', self.options, *words])
        return status, *(self._text(one) for one in said)

    def _text(self, stream):
        stream.stream.seek(0)
        found = stream.stream.read()
        return found

    def key(self, *words):
        status, out, err = self.run_command('host-key', *words)
        self.assertEqual((0, ''), (status, err))
        return signing_keys.parse_host_key(out)

    def test_life_of_a_key(self):
        first = self.key('issue', 'node1')
        self.assertEqual(('node1', 1), (first.host, first.serial))
        self.assertEqual(first, self.key('issue', 'node1'))
        second = self.key('rotate', 'node1')
        self.assertEqual(2, second.serial)
        self.assertNotEqual(first.secret, second.secret)
        self.assertIn('node1: 1 2', self.run_command('host-key', 'list')[1])
        self.assertEqual(3, self.key('rotate', 'node1').serial)
        self.assertIn('node1: 2 3', self.run_command('host-key', 'list')[1])
        self.assertEqual(0, self.run_command('host-key', 'revoke', 'node1')[0])
        self.assertIn('node1: none', self.run_command('host-key', 'list')[1])
        for word in ('revoke', 'rotate'):
            status, _, err = self.run_command('host-key', word, 'node1')
            self.assertEqual(1, status)
            self.assertIn('issue one', err)
        self.assertEqual(4, self.key('issue', 'node1').serial)

    def test_the_database_has_no_secret(self):
        """Whoever has a copy of it has no key."""
        keys = [self.key('issue', 'node1'), self.key('rotate', 'node1')]
        masters = signing.KeyFile(
            self.master, signing_keys.parse_masters
        ).read()
        rows = self.database.read(
            lambda session: [
                row
                for table in models.Base.metadata.sorted_tables
                for row in session.execute(sa.select(table))
            ]
        )
        self.assertIn('node1', str(rows))
        for secret in (*masters, *(one.secret for one in keys)):
            self.assertNotIn(secret.hex(), str(rows))
            self.assertNotIn(str(secret), str(rows))

    def test_a_file_of_its_own(self):
        path = os.path.join(self.folder, 'host.key')
        words = ('host-key', 'issue', 'node1', '--output', path)
        self.assertEqual((0, '', ''), self.run_command(*words))
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
        self.assertEqual(
            1, signing.KeyFile(path, signing_keys.parse_host_key).read().serial
        )
        # It is not overwritten, and what fails leaves nothing.
        self.assertEqual(1, self.run_command(*words)[0])
        os.unlink(path)
        self.assertEqual(
            1,
            self.run_command('host-key', 'rotate', 'node2', '--output', path)[
                0
            ],
        )
        self.assertFalse(os.path.exists(path))

    def test_names_that_no_host_has(self):
        self.assertEqual(1, self.run_command('host-key', 'issue', '')[0])
        self.assertEqual(
            1, self.run_command('host-key', 'issue', 'x' * 256)[0]
        )

    def test_without_a_master_key(self):
        os.chmod(self.master, 0o640)
        status, _, err = self.run_command('host-key', 'issue', 'node1')
        self.assertEqual(1, status)
        self.assertIn('chmod', err)

    def test_a_new_master_key_comes_first(self):
        (old,) = signing.KeyFile(
            self.master, signing_keys.parse_masters
        ).read()
        self.assertEqual(0, manage.main(['master-key', 'create', self.master]))
        new, kept = signing.KeyFile(
            self.master, signing_keys.parse_masters
        ).read()
        self.assertEqual(old, kept)
        self.assertNotEqual(old, new)
        self.assertEqual(
            signing_keys.derive(new, 'node1', 1), self.key('issue', 'node1')
        )

    def test_a_file_of_something_else_is_left_alone(self):
        path = bus_keys.write(self.folder, 'other', 'something else\n')
        self.assertEqual(1, manage.main(['master-key', 'create', path]))
        with open(path, encoding='ascii') as file:
            self.assertEqual('something else\n', file.read())
