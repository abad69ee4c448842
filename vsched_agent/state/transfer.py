# SPDX-License-Identifier: Apache-2.0
"""Copies records from one open journal to another."""

import sqlite3
import typing as ty

from vsched_agent.state import schema

#: The key of ``meta`` for the newest batch of the file's outbox that is
#: confirmed or dropped.
FLOOR = 'outbox_floor'


def copy_state(source: sqlite3.Connection, to: sqlite3.Connection) -> None:
    """Copy all tables with state; rows of the same key are replaced."""
    for table, columns in schema.STATE.items():
        # The names are the schema's own.
        names, places = ', '.join(columns), ', '.join('?' * len(columns))
        read = 'SELECT %s FROM %s' % (names, table)  # noqa: S608
        write = 'INSERT OR REPLACE INTO %s (%s) VALUES (%s)' % (  # noqa: S608
            table,
            names,
            places,
        )
        to.executemany(write, source.execute(read).fetchall())


def merge(
    memory: sqlite3.Connection, db: sqlite3.Connection, batches: list[ty.Any]
) -> None:
    """Write the state in memory to a file; its older batches stay.

    :param batches: further ones, of a file that was removed.
    """
    db.executemany('INSERT OR REPLACE INTO outbox VALUES (?, ?)', batches)
    floor = memory.execute(
        'SELECT value FROM meta WHERE key = ?', (FLOOR,)
    ).fetchone()
    if floor is not None:
        db.execute('DELETE FROM outbox WHERE batch <= ?', floor)
    for table in schema.STATE:
        db.execute('DELETE FROM %s' % table)  # noqa: S608
    copy_state(memory, db)
    db.execute('DELETE FROM meta WHERE key = ?', (FLOOR,))
    db.executemany(
        'INSERT OR REPLACE INTO outbox VALUES (?, ?)',
        memory.execute('SELECT batch, body FROM outbox').fetchall(),
    )
