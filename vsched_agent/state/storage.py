# SPDX-License-Identifier: Apache-2.0
"""Keeps the journal's records in its file, or temporarily in memory.

While the file cannot be written (disk full, read-only file system) records
are kept in memory, so that reservations can still be put in force. They are
written to the file as soon as that works again.
"""

import collections
from collections.abc import Callable
import contextlib
import enum
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.state import schema
from vsched_agent.state import transfer
from vsched_lib.contract import errors
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')
Severity = messages.Severity

#: Time between two attempts to write to the file again, in seconds.
RETRY_S = 5.0
#: Most notices that wait to be reported.
_MOST_NOTICES = 1000
#: The key of ``meta`` for :class:`Loss`.
_LOSS = 'loss'
#: What SQLite raises; its messages may quote bytes that are no UTF-8.
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
#: Where a read-only journal is copied to.
_COPY_DIRS = (None, '/dev/shm', '/run')


class Loss(enum.Enum):
    """Which records are missing."""

    #: None.
    NOTHING = 0
    #: There was no journal: a first start, or a deleted file.
    NEW = 1
    #: There was a journal, and it could not be read.
    DAMAGED = 2


class Notice(ty.NamedTuple):
    """Something to report to operators.

    :param detail: one sentence with the figures.
    """

    code: errors.Code
    severity: Severity
    detail: str
    figures: dict[str, ty.Any]


class Storage:
    """The journal's tables. Safe from any thread.

    :param path: of the file, created with its folder if missing.
    :param clock: returns seconds that never decrease.
    :raises journal_file.NewerJournal: when an older agent must not touch it.
    """

    def __init__(
        self, path: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._clock = clock
        self.lock = threading.RLock()
        self._notices: collections.deque[Notice] = collections.deque(
            maxlen=_MOST_NOTICES
        )
        self._memory: sqlite3.Connection | None = None
        self._retry_s = 0.0
        self._file: sqlite3.Connection | None = None
        #: Device and inode of the file; SQLite goes on writing to a file
        #: that was removed.
        self._identity: tuple[int, int] | None = None
        #: Whether ``_file`` is none that the path leads to.
        self._removed = False
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._make_folder()
            self._file = self._connect()
        except (*_FAILURES, OSError) as error:
            if not schema.unwritable(error):
                raise
            self._file = self._read_only()
            self._use_memory(error)

    @property
    def degraded(self) -> bool:
        """Return whether records are kept in memory only."""
        return self._memory is not None

    def notices(self) -> list[Notice]:
        """Return what happened since the last call."""
        return [self._notices.popleft() for _ in range(len(self._notices))]

    def notice(
        self,
        code: errors.Code,
        severity: Severity,
        detail: str,
        **figures: ty.Any,
    ) -> None:
        """Add a notice; the caller of :meth:`notices` logs it."""
        self._notices.append(Notice(code, severity, detail, figures))

    def loss(self) -> Loss:
        """Return which records were lost.

        It is recorded in the file until :meth:`accept_loss`, since another
        process than the one that detects a loss may recover from it.
        """
        return next(
            (
                Loss(value)
                for (value,) in self.rows(
                    'SELECT value FROM meta WHERE key = ?', _LOSS
                )
            ),
            Loss.NOTHING,
        )

    def accept_loss(self) -> None:
        """Clear the loss, as it has been recovered from."""
        self.run(
            lambda db: db.execute('DELETE FROM meta WHERE key = ?', (_LOSS,))
        )

    def close(self) -> None:
        """Write what is in memory to the file, if possible; close it."""
        with self.lock:
            if self._memory is not None:
                self._recover()
            for db in (self._file, self._memory):
                if db is not None:
                    db.close()
            self._drop_copy()

    def run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run an operation in a transaction: all of it or nothing.

        :param operation: may be called again with another connection when
            the first one fails.
        :returns: what it returns.
        """
        with self.lock:
            if self._memory is not None and self._clock() >= self._retry_s:
                self._recover()
            if self._memory is None:
                self._check_identity()
            if self._memory is None:
                assert self._file is not None
                try:
                    return _transact(self._file, operation)
                except _FAILURES as error:
                    self._failed(error)
            return _transact(self._current(), operation)

    def rows(self, query: str, *arguments: ty.Any) -> list[ty.Any]:
        """Return the rows of a query."""
        with self.lock:
            try:
                return self._current().execute(query, arguments).fetchall()
            except _FAILURES as error:
                if self._memory is not None:
                    raise
                self._failed(error)
                return self._current().execute(query, arguments).fetchall()

    def rows_in_file(self, query: str, *arguments: ty.Any) -> list[ty.Any]:
        """Return rows of the file while records are kept in memory.

        Empty when the file cannot even be read.
        """
        with self.lock:
            if self._memory is None or self._file is None:
                return []
            try:
                return self._file.execute(query, arguments).fetchall()
            except sqlite3.Error as error:
                LOG.debug(
                    'the journal %s cannot be read: %s', self._path, error
                )
                return []

    # The file

    def _current(self) -> sqlite3.Connection:
        db = self._memory or self._file
        assert db is not None
        return db

    def _make_folder(self) -> None:
        folder = os.path.dirname(self._path)
        if folder:
            os.makedirs(folder, mode=0o750, exist_ok=True)

    def _connect(self) -> sqlite3.Connection:
        new = not os.path.exists(self._path)
        try:
            db = schema.connect(self._path)
        except Exception as error:
            if not schema.corrupt(error):
                raise
            aside = schema.move_aside(self._path)
            db = schema.connect(self._path)
            self._damaged(db, error, aside)
        else:
            if new:
                _note_loss(db, Loss.NEW)
        self._identity = _identity(self._path)
        return db

    def _check_identity(self) -> None:
        """Continue in memory, and with a new file, if ours was removed."""
        assert self._file is not None
        if self._file.in_transaction:
            return
        try:
            found = _identity(self._path)
        except OSError:
            # Whether it can be written is for the next statement to find.
            return
        if found != self._identity:
            self._use_memory(
                FileNotFoundError('it was removed, or replaced by another')
            )
            self._recover()

    def _damaged(
        self, db: sqlite3.Connection, error: BaseException, aside: str
    ) -> None:
        _note_loss(db, Loss.DAMAGED)
        self.notice(
            errors.Code.JOURNAL_REBUILT,
            Severity.ERROR,
            'the journal %s was damaged (%s) and moved to %s; what is in '
            'force is taken over from the kernel'
            % (self._path, ascii(str(error))[:200], aside),
            moved_to=aside,
        )

    def _failed(self, error: Exception) -> None:
        """Continue in memory or with a new file, or raise the error."""
        if schema.corrupt(error):
            if self._file is not None:
                self._file.close()
            self._file = None
            try:
                aside = schema.move_aside(self._path)
                self._file = schema.connect(self._path)
                self._identity = _identity(self._path)
                self._damaged(self._file, error, aside)
            except (*_FAILURES, OSError) as failure:
                self._use_memory(failure)
        elif schema.unwritable(error):
            self._use_memory(error)
        else:
            raise error

    def _read_only(self) -> sqlite3.Connection | None:
        # SQLite cannot read a file with a write-ahead log where it cannot
        # write beside it.
        new = not os.path.exists(self._path)
        if not new and not os.path.isfile(self._path):
            # A device or a pipe may have no end.
            LOG.error('the journal %s is no regular file', self._path)
            return None
        for where in _COPY_DIRS:
            try:
                self._copy = tempfile.TemporaryDirectory(
                    prefix='vsched-journal-', dir=where
                )
                path = os.path.join(self._copy.name, 'copy.sqlite')
                for suffix in ('', '-wal'):
                    if os.path.exists(self._path + suffix):
                        shutil.copyfile(self._path + suffix, path + suffix)
                db = schema.connect(path)
                if new:
                    _note_loss(db, Loss.NEW)
                return db
            except (*_FAILURES, OSError) as error:
                LOG.warning(
                    'the journal %s cannot be copied: %s', self._path, error
                )
                self._drop_copy()
        return None

    def _drop_copy(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            with contextlib.suppress(OSError):
                copy.cleanup()

    # Memory in place of the file

    def _use_memory(self, error: BaseException) -> None:
        memory = schema.memory()
        try:
            if self._file is None:
                _note_loss(memory, Loss.DAMAGED)
            else:
                transfer.copy_state(self._file, memory)
        except sqlite3.Error as problem:
            LOG.error('the journal %s cannot be read: %s', self._path, problem)
            _note_loss(memory, Loss.DAMAGED)
        self._memory = memory
        self._retry_s = self._clock() + RETRY_S
        self.notice(
            errors.Code.JOURNAL_STORAGE_LOST,
            Severity.ERROR,
            'the journal %s cannot be written (%s): the agent keeps records '
            'in memory; batches that are not delivered are lost if it ends '
            'before the journal can be written' % (self._path, error),
        )

    def _recover(self) -> None:
        """Write what is in memory to the file, if that works."""
        assert self._memory is not None
        self._retry_s = self._clock() + RETRY_S
        fresh: sqlite3.Connection | None = None
        memory = self._memory
        try:
            batches = self._replaced_batches()
            fresh = self._connect()
            # Memory has all state, so the file's is replaced.
            _transact(fresh, lambda db: transfer.merge(memory, db, batches))
        except (*_FAILURES, OSError, schema.NewerJournal) as error:
            LOG.debug(
                'the journal %s cannot be written yet: %s', self._path, error
            )
            if fresh is not None:
                fresh.close()
            return
        if self._file is not None:
            self._file.close()
        self._drop_copy()
        self._file, self._memory, self._removed = fresh, None, False
        memory.close()
        self.notice(
            errors.Code.JOURNAL_STORAGE_BACK,
            Severity.INFO,
            'the journal %s can be written again; it has all records that '
            'were kept in memory' % self._path,
        )

    def _replaced_batches(self) -> list[ty.Any]:
        """Make room for a new file if ours was removed or replaced.

        :returns: the batches of ours, which SQLite can still read; empty if
            it is there.
        :raises OSError: when there is no room.
        """
        if not self._removed:
            if self._identity in (None, _identity(self._path)):
                return []
            self._clear_path()
            self._removed = True
        return self.rows_in_file('SELECT batch, body FROM outbox')

    def _clear_path(self) -> None:
        self._make_folder()
        if os.path.exists(self._path):
            LOG.warning(
                'the journal %s was replaced; the other file is moved to %s',
                self._path,
                schema.move_aside(self._path),
            )
        # They belong to ours: a new file must not be read with them.
        for suffix in ('-wal', '-shm'):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path + suffix)


def _identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _transact(
    db: sqlite3.Connection, operation: Callable[[sqlite3.Connection], T]
) -> T:
    if db.in_transaction:
        # Part of an outer transaction.
        return operation(db)
    db.execute('BEGIN IMMEDIATE')
    try:
        result = operation(db)
        db.execute('COMMIT')
    except BaseException:
        # Some failures have rolled back already.
        with contextlib.suppress(sqlite3.Error):
            db.execute('ROLLBACK')
        raise
    return result


def _note_loss(db: sqlite3.Connection, loss: Loss) -> None:
    db.execute(
        'INSERT OR REPLACE INTO meta VALUES (?, ?)', (_LOSS, loss.value)
    )
