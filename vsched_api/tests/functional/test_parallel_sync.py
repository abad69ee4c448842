# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage db sync`` on several controllers at the same moment."""

import os
import subprocess
import sys
import typing as ty

import sqlalchemy as sa

from vsched_api.db import migration
from vsched_api.tests import base
from vsched_api.tests import databases

PATIENCE_S = 300
ROOT = os.path.abspath(
    os.path.join(os.path.dirname(__file__), '..', '..', '..')
)


class ParallelSync:
    """Four at once; all of them succeed."""

    def test_all_succeed(self):
        self.conf = databases.configuration(
            self.kind.make(self, migrated=False)
        )
        options = databases.write(
            self,
            '[database]\nconnection = %s\n' % self.conf.database.connection,
        )
        processes = [
            subprocess.Popen(
                [
                    sys.executable,
                    '-W',
                    'ignore',
                    '-m',
                    'vsched_api.cmd.manage',
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
            for _ in range(4)
        ]
        for process in processes:
            self.addCleanup(process.kill)
        said = [
            process.communicate(timeout=PATIENCE_S)[0] for process in processes
        ]
        self.assertEqual(
            [0] * 4, [process.returncode for process in processes], said
        )
        self.assertEqual(migration.newest(), migration.version(self.conf))


class TestSQLite(ParallelSync, base.TestCase):
    """On one file."""


class TestPostgreSQL(ParallelSync, base.TestCase):
    """On a server."""

    kind = databases.PostgreSQL


class TestMariaDB(ParallelSync, base.TestCase):
    """On a server."""

    kind = databases.MariaDB

    def test_the_lock_is_kept_until_the_revision_is_stored(self):
        """What the next one that takes the lock would read, at that moment."""
        conf = databases.configuration(self.kind.make(self, migrated=False))
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
