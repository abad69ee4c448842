# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage db sync``: several at the same moment, and a killed one."""

import os
import signal
import subprocess
import sys
import typing as ty

import sqlalchemy as sa

from vsched_api.db import migration
from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases

PATIENCE_S = 300
ROOT = os.path.abspath(
    os.path.join(os.path.dirname(__file__), '..', '..', '..')
)

#: The command, which is killed before it stores a revision: the second one,
#: whose tables MariaDB has by then.
_KILLED = """
import os, signal, sys
import sqlalchemy as sa
from vsched_api.cmd import manage

def look(_connection, _cursor, statement, *_rest):
    if statement.strip().startswith('UPDATE alembic_version'):
        os.kill(os.getpid(), signal.SIGKILL)

sa.event.listen(sa.Engine, 'before_cursor_execute', look)
sys.exit(manage.main(sys.argv[1:]))
"""


class ParallelSync:
    """Four at once, and one after a killed one; all of them succeed."""

    def test_after_one_that_was_killed(self):
        self.conf = database_options.configuration(
            self.kind.make(self, migrated=False)
        )
        killed = self._start('-c', _KILLED)
        said = killed.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(-signal.SIGKILL, killed.returncode, said)
        self.assertNotEqual(migration.newest(), migration.version(self.conf))
        again = self._start('-m', 'vsched_api.cmd.manage')
        said = again.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(0, again.returncode, said)
        self.assertEqual(migration.newest(), migration.version(self.conf))
        self.check_output(said)

    def check_output(self, said):
        """What the one after a killed one prints."""
        self.assertNotIn('interrupted', said)

    def test_all_succeed(self):
        self.conf = database_options.configuration(
            self.kind.make(self, migrated=False)
        )
        processes = [
            self._start('-m', 'vsched_api.cmd.manage') for _ in range(4)
        ]
        said = [
            process.communicate(timeout=PATIENCE_S)[0] for process in processes
        ]
        self.assertEqual(
            [0] * 4, [process.returncode for process in processes], said
        )
        self.assertEqual(migration.newest(), migration.version(self.conf))

    def _start(self, *program):
        options = databases.write(
            self,
            '[database]\nconnection = %s\n' % self.conf.database.connection,
        )
        process = subprocess.Popen(
            [
                sys.executable,
                '-W',
                'ignore',
                *program,
                '--config-file',
                options,
                'db',
                'sync',
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.addCleanup(process.kill)
        return process


class TestSQLite(ParallelSync, base.TestCase):
    """On one file."""


class TestPostgreSQL(ParallelSync, base.TestCase):
    """On a server."""

    kind = databases.PostgreSQL


class TestMariaDB(ParallelSync, base.TestCase):
    """On a server."""

    kind = databases.MariaDB

    def check_output(self, said):
        """It names what it has not made again."""
        self.assertIn('table host_verifications is there already', said)
        self.assertIn('column instances.contradicted_at is there', said)
        self.assertIn('sync was interrupted', said)

    def test_the_lock_is_kept_until_the_revision_is_stored(self):
        """What the next one that takes the lock would read, at that moment."""
        conf = database_options.configuration(
            self.kind.make(self, migrated=False)
        )
        seen: list[str | None] = []

        def look(
            _connection: ty.Any,
            _cursor: ty.Any,
            statement: str,
            *_rest: ty.Any,
        ) -> None:
            if 'RELEASE_LOCK' in statement:
                seen.append(migration.version(conf))

        sa.event.listen(sa.Engine, 'after_cursor_execute', look)
        self.addCleanup(
            sa.event.remove, sa.Engine, 'after_cursor_execute', look
        )
        migration.sync(conf)
        self.assertEqual([migration.newest()], seen)
