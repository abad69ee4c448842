# SPDX-License-Identifier: Apache-2.0

"""The agent's journal: the state that outlives its process.

One SQLite file has the prior state of each thread that vsched changed, the
ballooned instances, the operators' overrides, the last report of each
reservation, and the batches that the collector has not confirmed. A record
is written before the change it describes, so that the next agent can
continue or undo the work of a killed one.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import json
import secrets
import sqlite3
import time
import typing as ty

from vsched_agent.state import storage
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.contract import messages

T = ty.TypeVar('T')

#: Most batches, and bytes of them, that are kept in memory while the file
#: cannot be written; the oldest are dropped for newer ones.
MEMORY_BATCHES = 1000
MEMORY_BYTES = 32 * 1024 * 1024
#: Most records that are set aside; the oldest are dropped for newer ones.
MOST_QUARANTINED = 1000
#: What parsing a damaged record may raise.
_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
_FLOOR = storage.FLOOR
_MEASURED = 'measured_profile'


class Prior(ty.NamedTuple):
    """The state of one thread before vsched changed it.

    :param pid: the thread's process.
    :param found: in the backend's own format, see ``Backend.prior``.
    """

    pid: int
    found: Mapping[str, ty.Any]


class Journal:
    """The agent's persistent state. Safe from any thread.

    A record that cannot be read is set aside in the table ``quarantine``.
    While the file cannot be written, see :mod:`storage`.

    :param path: the file, created with its folder if missing.
    :ivar epoch: identifies this run of the agent, in each batch that it
        numbers. A copy of the file gets another one when it is opened, so
        the collector can distinguish their batches.
    :raises schema.NewerJournal: when a newer agent has written it.
    """

    def __init__(self, path: str) -> None:
        self._storage = storage.Storage(path)
        self.epoch = secrets.token_hex(16)

    def close(self) -> None:
        """Close the file."""
        self._storage.close()

    @property
    def degraded(self) -> bool:
        """Return whether records are kept in memory because the file fails."""
        return self._storage.degraded

    def notices(self) -> list[storage.Notice]:
        """Return what happened to the journal since the last call."""
        return self._storage.notices()

    def loss(self) -> storage.Loss:
        """Return which records were lost.

        After a loss the kernel may have reservations without a record.
        """
        return self._storage.loss()

    def accept_loss(self) -> None:
        """Clear the loss: what the kernel has in force is recorded again."""
        self._storage.accept_loss()

    def _run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        return self._storage.run(operation)

    def _rows(self, query: str, *arguments: ty.Any) -> list[ty.Any]:
        return self._storage.rows(query, *arguments)

    # Prior state of threads

    def priors(self, instance_uuid: str, backend: str) -> dict[int, Prior]:
        """Return each thread's state before a backend changed it.

        A record that cannot be read is empty: restoring it gives the thread
        the kernel's defaults.
        """
        found = {}
        for row, tid, pid, text in self._rows(
            'SELECT rowid, tid, pid, found FROM prior WHERE'
            ' instance_uuid = ? AND backend = ?',
            instance_uuid,
            backend,
        ):
            key = '%s %s %s' % (instance_uuid, backend, tid)
            if not (isinstance(tid, int) and isinstance(pid, int)):
                self._set_aside(
                    'prior',
                    key,
                    text,
                    TypeError('thread %r of process %r' % (tid, pid)),
                    'DELETE FROM prior WHERE rowid = ?',
                    row,
                )
                continue
            try:
                prior = _object(text)
            except _UNREADABLE as problem:
                self._set_aside(
                    'prior',
                    key,
                    text,
                    problem,
                    "UPDATE prior SET found = '{}' WHERE rowid = ?",
                    row,
                )
                prior = {}
            found[tid] = Prior(pid, prior)
        return found

    def touched(self) -> list[tuple[str, str]]:
        """Return every (instance, backend) with something to restore."""
        return self._rows(
            'SELECT DISTINCT instance_uuid, backend FROM prior'
            ' ORDER BY instance_uuid, backend'
        )

    def remember(
        self,
        instance_uuid: str,
        backend: str,
        pid: int,
        found: Mapping[int, Mapping[str, ty.Any]],
    ) -> None:
        """Record threads' prior state; existing records stay unchanged."""

        def keep(db: sqlite3.Connection) -> None:
            # Threads of an earlier process of the instance have ended.
            db.execute(
                'DELETE FROM prior WHERE instance_uuid = ? AND pid != ?',
                (instance_uuid, pid),
            )
            db.executemany(
                'INSERT OR IGNORE INTO prior VALUES (?, ?, ?, ?, ?)',
                [
                    (instance_uuid, backend, pid, tid, json.dumps(dict(value)))
                    for tid, value in found.items()
                ],
            )

        self._run(keep)

    def forget(self, instance_uuid: str, backend: str | None = None) -> None:
        """Delete records of threads that were restored or have ended."""
        if backend is None:
            self._run(
                lambda db: db.execute(
                    'DELETE FROM prior WHERE instance_uuid = ?',
                    (instance_uuid,),
                )
            )
        else:
            self._run(
                lambda db: db.execute(
                    'DELETE FROM prior WHERE instance_uuid = ? AND backend = '
                    '?',
                    (instance_uuid, backend),
                )
            )

    def forget_threads(
        self, instance_uuid: str, backend: str, tids: Iterable[int]
    ) -> None:
        """Delete the records of threads that were restored."""
        rows = [(instance_uuid, backend, tid) for tid in tids]
        self._run(
            lambda db: db.executemany(
                'DELETE FROM prior WHERE instance_uuid = ?'
                ' AND backend = ? AND tid = ?',
                rows,
            )
        )

    # Balloons

    def balloons(self) -> list[Mapping[str, ty.Any]]:
        """Return the records of instances with vCPUs taken offline."""
        return self._bodies('balloon', _object)

    def note_balloon(
        self, instance_uuid: str, body: Mapping[str, ty.Any]
    ) -> None:
        """Record that vCPUs of an instance are to be taken offline."""
        text = json.dumps(dict(body))
        self._run(
            lambda db: db.execute(
                'INSERT OR REPLACE INTO balloon VALUES (?, ?)',
                (instance_uuid, text),
            )
        )

    def forget_balloon(self, instance_uuid: str) -> None:
        """Delete the record of an instance with all vCPUs online."""
        self._run(
            lambda db: db.execute(
                'DELETE FROM balloon WHERE instance_uuid = ?', (instance_uuid,)
            )
        )

    # Overrides

    def overrides(self) -> messages.Overrides:
        """Return the operators' overrides as last received.

        When one of them cannot be read the generation is invalid, so that
        all are fetched from the collector again.
        """
        with self._storage.lock:
            overrides = self._bodies(
                'override',
                lambda text: messages.Override.from_dict(_object(text)),
                _FORGET_OVERRIDES,
            )
            orders = self._bodies(
                'balloon_order',
                lambda text: balloons.BalloonOrder.from_dict(_object(text)),
                _FORGET_OVERRIDES,
            )
            return messages.Overrides(
                self.overrides_generation(), tuple(overrides), tuple(orders)
            )

    def overrides_generation(self) -> int:
        """Return the generation of the overrides as last received."""
        return self._number('overrides_generation')

    def replace_overrides(self, overrides: messages.Overrides) -> None:
        """Replace all overrides."""

        def replace(db: sqlite3.Connection) -> None:
            db.execute('DELETE FROM override')
            db.executemany(
                'INSERT INTO override VALUES (?, ?)',
                [
                    (one.instance_uuid, json.dumps(one.to_dict()))
                    for one in overrides.overrides
                ],
            )
            db.execute('DELETE FROM balloon_order')
            db.executemany(
                'INSERT INTO balloon_order VALUES (?, ?)',
                [
                    (one.instance_uuid, json.dumps(one.to_dict()))
                    for one in overrides.balloons
                ],
            )
            _set_number(db, 'overrides_generation', overrides.generation)

        self._run(replace)

    # Reports

    def reservations(self) -> dict[str, messages.ReservationReport]:
        """Return the last report of each instance's reservation."""
        return {
            one.instance_uuid: one
            for one in self._bodies(
                'reservation',
                lambda text: messages.ReservationReport.from_dict(
                    _object(text)
                ),
            )
        }

    def note_reservations(
        self,
        changed: Iterable[messages.ReservationReport],
        removed: Iterable[str] = (),
    ) -> None:
        """Keep the newest reports; drop those of removed instances."""
        newer = [
            (one.instance_uuid, json.dumps(one.to_dict())) for one in changed
        ]
        over = [(uuid,) for uuid in removed]

        def note(db: sqlite3.Connection) -> None:
            db.executemany(
                'INSERT OR REPLACE INTO reservation VALUES (?, ?)', newer
            )
            db.executemany(
                'DELETE FROM reservation WHERE instance_uuid = ?', over
            )

        self._run(note)

    # Outbox

    def post(
        self,
        make: Callable[[int], messages.Report],
        checkpoint: Mapping[str, ty.Any] | None = None,
        measured: int | None = None,
    ) -> int:
        """Number a batch and keep it until it is confirmed.

        :param make: builds the batch for its number; may be called twice.
        :param checkpoint: the counters of CPU time after the samples of
            this batch. Both are stored, or neither: no sample is lost or
            counted twice when the agent is killed.
        :param measured: version of the newest error profile whose
            measurement is an event of this or an earlier batch; None when
            that has not changed.
        :returns: the number.
        """

        def put(db: sqlite3.Connection) -> int:
            batch = _number(db, 'batch') + 1
            _set_number(db, 'batch', batch)
            report = dataclasses.replace(make(batch), epoch=self.epoch)
            db.execute(
                'INSERT INTO outbox VALUES (?, ?)',
                (batch, json.dumps(report.to_dict())),
            )
            if checkpoint is not None:
                db.execute(
                    'INSERT OR REPLACE INTO usage_checkpoint VALUES (1, ?)',
                    (json.dumps(checkpoint),),
                )
            if measured is not None:
                _set_number(db, _MEASURED, measured)
            return batch

        return self._run(put)

    def measured(self) -> int | None:
        """Return the version of the newest error profile with an event.

        None when there was no such event, or the journal was lost.
        """
        for (value,) in self._rows(
            'SELECT value FROM meta WHERE key = ?', _MEASURED
        ):
            if isinstance(value, int):
                return value
        return None

    def usage_checkpoint(self) -> Mapping[str, ty.Any] | None:
        """Return the counters after the last batch; None if not stored."""
        for (body,) in self._rows('SELECT body FROM usage_checkpoint'):
            try:
                return _object(body)
            except _UNREADABLE as problem:
                self._set_aside(
                    'usage_checkpoint',
                    '1',
                    body,
                    problem,
                    'DELETE FROM usage_checkpoint',
                )
        return None

    def replace_epoch(self, replaced: str, stored: int) -> int:
        """Move waiting batches of a replaced epoch to that of this run.

        Those that the collector has stored already are dropped.

        :param replaced: the epoch that has ended.
        :param stored: number of its newest batch that the collector has.
        :returns: how many were dropped.
        """

        def move(db: sqlite3.Connection) -> int:
            if self._storage.degraded:
                # The rows in the file cannot be changed.
                rows = self._storage.rows_in_file(
                    'SELECT batch, body FROM outbox WHERE batch > ?',
                    _number(db, _FLOOR),
                )
                db.executemany(
                    'INSERT OR REPLACE INTO outbox VALUES (?, ?)', rows
                )
                for batch, _ in rows:
                    self._raise_floor(db, batch)
            dropped = db.execute(
                'DELETE FROM outbox WHERE batch <= ? AND json_valid(body)'
                " AND json_extract(body, '$.epoch') = ?",
                (stored, replaced),
            ).rowcount
            db.execute(
                "UPDATE outbox SET body = json_set(body, '$.epoch', ?)"
                ' WHERE json_valid(body)'
                " AND json_extract(body, '$.epoch') = ?",
                (self.epoch, replaced),
            )
            return dropped

        with self._storage.lock:
            if replaced == self.epoch:
                self.epoch = secrets.token_hex(16)
            return self._run(move)

    def oldest(self) -> messages.Report | None:
        """Return the oldest batch that is not confirmed."""
        while True:
            rows = self._batches(1)
            if not rows:
                return None
            ((batch, body),) = rows
            try:
                return messages.Report.from_dict(_object(body))
            except _UNREADABLE as problem:
                self._set_aside('outbox', str(batch), body, problem)
                self.confirm(batch)

    def confirm(self, batch: int) -> None:
        """Delete a batch that the collector has stored."""

        def delete(db: sqlite3.Connection) -> None:
            db.execute('DELETE FROM outbox WHERE batch = ?', (batch,))
            self._raise_floor(db, batch)

        self._run(delete)

    def trim(self, most: int) -> list[messages.Report]:
        """Drop the oldest batches above ``most``.

        While the file cannot be written those in memory are limited by
        ``MEMORY_BATCHES`` and ``MEMORY_BYTES`` as well.

        :returns: the dropped ones, oldest first.
        """
        with self._storage.lock:
            dropped = self._batches(max(0, self.waiting() - most))
            if dropped:
                last = dropped[-1][0]

                def delete(db: sqlite3.Connection) -> None:
                    db.execute('DELETE FROM outbox WHERE batch <= ?', (last,))
                    self._raise_floor(db, last)

                self._run(delete)
            if self._storage.degraded:
                dropped += self._run(_trim_memory)
        found = []
        for _, body in dropped:
            try:
                found.append(messages.Report.from_dict(_object(body)))
            except _UNREADABLE:
                continue
        return found

    def waiting(self) -> int:
        """Return how many batches are not confirmed."""
        with self._storage.lock:
            count = self._rows('SELECT COUNT(*) FROM outbox')[0][0]
            for (more,) in self._storage.rows_in_file(
                'SELECT COUNT(*) FROM outbox WHERE batch > ?', self._floor()
            ):
                count += more
            return ty.cast(int, count)

    def _batches(self, most: int) -> list[tuple[int, str]]:
        """Return the oldest batches, those in the file first."""
        query = (
            'SELECT batch, body FROM outbox WHERE batch > ?'
            ' ORDER BY batch LIMIT ?'
        )
        with self._storage.lock:
            if most <= 0:
                return []
            rows: list[tuple[int, str]] = []
            if self._storage.degraded:
                rows = self._storage.rows_in_file(query, self._floor(), most)
            if len(rows) < most:
                rows += self._rows(query, -1, most - len(rows))
            return rows

    def _floor(self) -> int:
        return self._number(_FLOOR)

    def _raise_floor(self, db: sqlite3.Connection, batch: int) -> None:
        # The file's rows cannot be deleted; up to here they are finished.
        if self._storage.degraded:
            _set_number(db, _FLOOR, max(batch, _number(db, _FLOOR)))

    # Records that cannot be read

    def _bodies(
        self, table: str, read: Callable[[str], T], also: tuple[str, ...] = ()
    ) -> list[T]:
        found = []
        # The tables' names are this module's own.
        query = 'SELECT rowid, instance_uuid, body FROM %s' % table  # noqa: S608
        delete = 'DELETE FROM %s WHERE rowid = ?' % table  # noqa: S608
        for row, uuid, text in self._rows(query + ' ORDER BY instance_uuid'):
            try:
                found.append(read(text))
            except _UNREADABLE as problem:
                self._set_aside(
                    table, str(uuid), text, problem, delete, row, also=also
                )
        return found

    def _set_aside(
        self,
        table: str,
        key: str,
        body: ty.Any,
        problem: Exception,
        change: str | None = None,
        *arguments: ty.Any,
        also: tuple[str, ...] = (),
    ) -> None:
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

        self._run(move)
        self._storage.notice(
            errors.Code.JOURNAL_RECORD_UNREADABLE,
            messages.Severity.ERROR,
            'a record of the journal cannot be read and was set aside: %s %s '
            '(%s)' % (table, ascii(key)[:100], why),
            table=table,
            key=key[:100],
        )

    def _number(self, key: str) -> int:
        rows = self._rows('SELECT value FROM meta WHERE key = ?', key)
        return rows[0][0] if rows else 0


#: Sets a generation that the collector never uses.
_FORGET_OVERRIDES = (
    "INSERT OR REPLACE INTO meta VALUES ('overrides_generation', -1)",
)


def _number(db: sqlite3.Connection, key: str) -> int:
    row = db.execute('SELECT value FROM meta WHERE key = ?', (key,)).fetchone()
    return row[0] if row else 0


def _set_number(db: sqlite3.Connection, key: str, value: int) -> None:
    db.execute('INSERT OR REPLACE INTO meta VALUES (?, ?)', (key, value))


def _object(text: ty.Any) -> dict[str, ty.Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError('not an object')
    return value


def _trim_memory(db: sqlite3.Connection) -> list[tuple[int, str]]:
    kept = dropped = 0
    size = 0
    for (size_of,) in db.execute(
        'SELECT LENGTH(CAST(body AS BLOB)) FROM outbox ORDER BY batch DESC'
    ):
        size += size_of
        if kept == MEMORY_BATCHES or size > MEMORY_BYTES:
            dropped += 1
        else:
            kept += 1
    if not dropped:
        return []
    rows = db.execute(
        'SELECT batch, body FROM outbox ORDER BY batch LIMIT ?', (dropped,)
    ).fetchall()
    db.execute('DELETE FROM outbox WHERE batch <= ?', (rows[-1][0],))
    return rows
