# SPDX-License-Identifier: Apache-2.0
"""The journal's schema and its migrations; moves damaged files aside.

An agent whose journal is damaged starts with an empty one instead of failing
at every start.
"""

from collections.abc import Callable
import contextlib
import glob
import os
import sqlite3
import time
import urllib.parse

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: How many files moved aside are kept; older ones are deleted.
MOST_KEPT = 3

_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_UNWRITABLE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
)
_INCOMPREHENSIBLE = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_TOOBIG,
)
#: Suffixes of the files of one database.
_SUFFIXES = ('', '-wal', '-shm')

#: Columns by table, of the tables with state; the outbox is separate.
STATE = {
    'meta': ('key', 'value'),
    'prior': ('instance_uuid', 'backend', 'pid', 'tid', 'found'),
    'override': ('instance_uuid', 'body'),
    'balloon_order': ('instance_uuid', 'body'),
    'reservation': ('instance_uuid', 'body'),
    'balloon': ('instance_uuid', 'body'),
    'granularity': ('instance_uuid', 'body'),
    'host_boot': ('id', 'boot_id'),
    'usage_checkpoint': ('id', 'body'),
    'quarantine': ('number', 'source', 'key', 'body', 'problem', 'at'),
}
OUTBOX = {'outbox': ('batch', 'body')}

_VERSION_1 = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER);
CREATE TABLE IF NOT EXISTS prior (
    instance_uuid TEXT, backend TEXT, pid INTEGER, tid INTEGER, found TEXT,
    PRIMARY KEY (instance_uuid, backend, tid));
CREATE TABLE IF NOT EXISTS override (
    instance_uuid TEXT PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS balloon_order (
    instance_uuid TEXT PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS reservation (
    instance_uuid TEXT PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS balloon (
    instance_uuid TEXT PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS outbox (
    batch INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS usage_checkpoint (
    id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT);
CREATE TABLE IF NOT EXISTS quarantine (
    number INTEGER PRIMARY KEY, source TEXT, key TEXT, body TEXT,
    problem TEXT, at REAL);
"""


def _to_version_1(db: sqlite3.Connection) -> None:
    # Journals without a version have version 0, and lack the last tables.
    for statement in _VERSION_1.split(';'):
        db.execute(statement)


#: Function N migrates a journal from version N to N + 1, in one transaction.
#: A released one is never removed or changed.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_to_version_1,)
VERSION = len(MIGRATIONS)

#: Tables that were added later. Agents that do not know them can leave them
#: alone, so they need no new version, and an agent can be downgraded.
_ADDED = (
    'CREATE TABLE IF NOT EXISTS granularity ('
    'instance_uuid TEXT PRIMARY KEY, body TEXT)',
    'CREATE TABLE IF NOT EXISTS host_boot ('
    'id INTEGER PRIMARY KEY CHECK (id = 1), boot_id TEXT)',
)


class NewerJournal(Exception):
    """The journal was written by a newer agent."""


class _NotAJournal(sqlite3.DatabaseError):
    """A database that is damaged or is not a journal."""


def corrupt(error: BaseException) -> bool:
    """Return whether an error says that the file's content is damaged."""
    # SQLite's message on a damaged schema quotes it, and may be no UTF-8.
    return isinstance(error, (_NotAJournal, UnicodeDecodeError)) or (
        _code(error) in _CORRUPT
    )


def unwritable(error: BaseException) -> bool:
    """Return whether an error says that the file cannot be written now."""
    return isinstance(error, OSError) or _code(error) in _UNWRITABLE


def _code(error: BaseException) -> int:
    # Extended codes have the primary one in their lowest byte.
    return getattr(error, 'sqlite_errorcode', 0) & 0xFF


def connect(path: str) -> sqlite3.Connection:
    """Open a journal, check it and bring it to the present version.

    :param path: created if missing.
    :raises NewerJournal: when an older agent must not touch it.
    :raises sqlite3.Error: see :func:`corrupt` and :func:`unwritable`.
    """
    db = _open(path)
    try:
        # In this mode a killed process loses nothing. A power failure may
        # lose records, but ends the instances as well.
        db.execute('PRAGMA journal_mode=WAL')
        db.execute('PRAGMA synchronous=NORMAL')
        found = db.execute('PRAGMA quick_check(1)').fetchone()[0]
        if found != 'ok':
            raise _NotAJournal(str(found))
        migrate(db, path)
        # Detect a full or read-only file system here, not with the first
        # record.
        db.execute('BEGIN IMMEDIATE')
        db.execute('INSERT OR REPLACE INTO meta VALUES (?, ?)', ('opened', 1))
        db.execute('COMMIT')
    except BaseException as error:
        db.close()
        if _code(error) in _INCOMPREHENSIBLE:
            # The statements are correct, so the file is the cause.
            raise _NotAJournal(str(error)) from error
        raise
    return db


def check_version(path: str) -> None:
    """Refuse a journal that a newer agent has written; change nothing.

    :raises NewerJournal: when its version is not known here.
    """
    try:
        with contextlib.closing(
            sqlite3.connect(
                'file:%s?mode=ro' % urllib.parse.quote(path), uri=True
            )
        ) as db:
            version = db.execute('PRAGMA user_version').fetchone()[0]
    except (sqlite3.Error, UnicodeDecodeError):
        # Opening the journal handles this.
        return
    if version > VERSION:
        raise _newer(path, version)


def _newer(path: str, version: int) -> NewerJournal:
    return NewerJournal(
        'the journal %s has schema version %d, and this agent reads up to '
        '%d: run the agent that wrote it, or move the file aside to start '
        'with an empty one' % (path, version, VERSION)
    )


def _open(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    # Damaged text is detected when the record is parsed.
    db.text_factory = lambda data: data.decode('utf-8', 'replace')
    return db


def memory() -> sqlite3.Connection:
    """Open an empty journal that has no file."""
    db = _open(':memory:')
    migrate(db, ':memory:')
    return db


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Bring an open journal to the present version.

    :raises NewerJournal: when its version is not known here.
    """
    version = db.execute('PRAGMA user_version').fetchone()[0]
    if not 0 <= version <= VERSION:
        raise _newer(path, version)
    for number in range(version, VERSION):
        db.execute('BEGIN IMMEDIATE')
        try:
            MIGRATIONS[number](db)
            db.execute('PRAGMA user_version = %d' % (number + 1))
            db.execute('COMMIT')
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute('ROLLBACK')
            raise
    for statement in _ADDED:
        db.execute(statement)
    for table, columns in {**STATE, **OUTBOX}.items():
        found = {row[1] for row in db.execute('PRAGMA table_info(%s)' % table)}
        if not found.issuperset(columns):
            raise _NotAJournal(
                'table %s lacks columns %s'
                % (table, sorted(set(columns) - found))
            )
    wrong = db.execute(
        'SELECT key FROM meta WHERE key IN (?, ?) AND typeof(value) !='
        " 'integer'",
        ('batch', 'overrides_generation'),
    ).fetchall()
    if wrong:
        raise _NotAJournal('no number: %s' % [key for (key,) in wrong])


def move_aside(path: str) -> str:
    """Rename a journal's files.

    :returns: the new path.
    :raises OSError: when they cannot be renamed.
    """
    name = '%s.corrupt-%s' % (
        path,
        time.strftime('%Y%m%dT%H%M%SZ', time.gmtime()),
    )
    aside, number = name, 0
    while os.path.exists(aside):
        number += 1
        aside = '%s.%d' % (name, number)
    for suffix in reversed(_SUFFIXES):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    _keep_newest(path)
    return aside


def _keep_newest(path: str) -> None:
    kept = sorted(
        (
            one
            for one in glob.glob(glob.escape(path) + '.corrupt-*')
            if not one.endswith(_SUFFIXES[1:])
        ),
        key=os.path.getmtime,
    )
    for one in kept[:-MOST_KEPT]:
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(one + suffix)
