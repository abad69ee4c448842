# SPDX-License-Identifier: Apache-2.0

"""Reads the journal's records, and sets aside those that cannot be read."""

from collections.abc import Callable
import json
import sqlite3
import time
import typing as ty

from vsched_agent.state import storage as storages
from vsched_lib.contract import errors
from vsched_lib.contract import messages

T = ty.TypeVar('T')

#: Most records that are set aside; the oldest are dropped for newer ones.
MOST_QUARANTINED = 1000
#: What parsing a damaged record may raise.
UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


class Records:
    """Records of the journal's tables. Safe from any thread.

    A record that cannot be read is moved to the table ``quarantine``.

    :param storage: has the tables.
    """

    def __init__(self, storage: storages.Storage) -> None:
        self._storage = storage

    def bodies(
        self, table: str, read: Callable[[str], T], also: tuple[str, ...] = ()
    ) -> list[T]:
        """Return what a table's readable records contain, by instance.

        :param read: parses one record's body.
        :param also: statements to run when a record is set aside.
        """
        found = []
        # The tables' names are the callers' own, not input.
        query = 'SELECT rowid, instance_uuid, body FROM %s' % table  # noqa: S608
        delete = 'DELETE FROM %s WHERE rowid = ?' % table  # noqa: S608
        for row, uuid, text in self._storage.rows(
            query + ' ORDER BY instance_uuid'
        ):
            try:
                found.append(read(text))
            except UNREADABLE as problem:
                self.set_aside(
                    table, str(uuid), text, problem, delete, row, also=also
                )
        return found

    def set_aside(
        self,
        table: str,
        key: str,
        body: ty.Any,
        problem: Exception,
        change: str | None = None,
        *arguments: ty.Any,
        also: tuple[str, ...] = (),
    ) -> None:
        """Move a record that cannot be read to ``quarantine``.

        :param body: of the record, in any type.
        :param problem: why it cannot be read.
        :param change: statement that removes or replaces the record.
        :param arguments: of the statement.
        :param also: statements to run with it.
        """
        why = '%s: %s' % (type(problem).__name__, ascii(str(problem))[:300])

        def move(db: sqlite3.Connection) -> None:
            db.execute(
                'INSERT INTO quarantine (source, key, body, problem, at)'
                ' VALUES (?, ?, ?, ?, ?)',
                (
                    table,
                    key,
                    body if isinstance(body, (str, bytes)) else repr(body),
                    why,
                    time.time(),
                ),
            )
            db.execute(
                'DELETE FROM quarantine WHERE number <= ('
                'SELECT MAX(number) FROM quarantine) - ?',
                (MOST_QUARANTINED,),
            )
            if change is not None:
                db.execute(change, arguments)
            for statement in also:
                db.execute(statement)

        self._storage.run(move)
        self._storage.notice(
            errors.Code.JOURNAL_RECORD_UNREADABLE,
            messages.Severity.ERROR,
            'a record of the journal cannot be read and was set aside: %s %s '
            '(%s)' % (table, ascii(key)[:100], why),
            table=table,
            key=key[:100],
        )

    def number(self, key: str) -> int:
        """Return a number of the table ``meta``; 0 if it is not there."""
        rows = self._storage.rows('SELECT value FROM meta WHERE key = ?', key)
        return rows[0][0] if rows else 0


def number(db: sqlite3.Connection, key: str) -> int:
    """Return a number of the table ``meta``; 0 if it is not there."""
    row = db.execute('SELECT value FROM meta WHERE key = ?', (key,)).fetchone()
    return row[0] if row else 0


def set_number(db: sqlite3.Connection, key: str, value: int) -> None:
    """Set a number of the table ``meta``."""
    db.execute('INSERT OR REPLACE INTO meta VALUES (?, ?)', (key, value))


def parse(text: ty.Any) -> dict[str, ty.Any]:
    """Return a record's body.

    :raises Exception: one of ``UNREADABLE``.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError('not an object')
    return value
