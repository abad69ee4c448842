# SPDX-License-Identifier: Apache-2.0

"""The batches that the collector has not confirmed."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import json
import secrets
import sqlite3
import threading
import typing as ty

from vsched_agent.state import records as journal_records
from vsched_agent.state import storage as storages
from vsched_agent.state import transfer
from vsched_lib.contract import messages

#: Most batches, and bytes of them, that are kept in memory while the file
#: cannot be written; the oldest are dropped for newer ones.
MEMORY_BATCHES = 1000
MEMORY_BYTES = 32 * 1024 * 1024
#: The key of ``meta`` for :meth:`Outbox.measured`.
_MEASURED = 'measured_profile'


class Outbox:
    """Numbered batches in the journal. Safe from any thread.

    :param storage: has the table.
    :param records: reads it.
    :ivar epoch: identifies this run of the agent, in each batch that it
        numbers. A copy of the file gets another one when it is opened, so
        the collector can distinguish their batches.
    :ivar posted: set when a batch is added; who waits for batches clears it.
    """

    def __init__(
        self, storage: storages.Storage, records: journal_records.Records
    ) -> None:
        self._storage = storage
        self._records = records
        self.epoch = secrets.token_hex(16)
        self.posted = threading.Event()

    def post(
        self,
        make: Callable[[int], messages.Report],
        checkpoint: Mapping[str, ty.Any] | None = None,
        measured: int | None = None,
        reservations: Iterable[messages.ReservationReport] = (),
    ) -> int:
        """Number a batch and keep it until it is confirmed.

        :param make: builds the batch for its number; may be called twice.
        :param checkpoint: the counters of CPU time after the samples of
            this batch. Both are stored, or neither: no sample is lost or
            counted twice when the agent is killed.
        :param measured: version of the newest error profile whose
            measurement is an event of this or an earlier batch; None when
            that has not changed.
        :param reservations: those of this batch that are new.
        :returns: the number.
        """
        newer = [
            (one.instance_uuid, json.dumps(one.to_dict()))
            for one in reservations
        ]

        def put(db: sqlite3.Connection) -> int:
            batch = journal_records.number(db, 'batch') + 1
            journal_records.set_number(db, 'batch', batch)
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
                journal_records.set_number(db, _MEASURED, measured)
            db.executemany(
                'INSERT OR REPLACE INTO reservation VALUES (?, ?)', newer
            )
            return batch

        number = self._storage.run(put)
        self.posted.set()
        return number

    def measured(self) -> int | None:
        """Return the version of the newest error profile with an event.

        None when there was no such event, or the journal was lost.
        """
        for (value,) in self._storage.rows(
            'SELECT value FROM meta WHERE key = ?', _MEASURED
        ):
            if isinstance(value, int):
                return value
        return None

    def usage_checkpoint(self) -> Mapping[str, ty.Any] | None:
        """Return the counters after the last batch; None if not stored."""
        for (body,) in self._storage.rows('SELECT body FROM usage_checkpoint'):
            try:
                return journal_records.parse(body)
            except journal_records.UNREADABLE as problem:
                self._records.set_aside(
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
                    journal_records.number(db, transfer.FLOOR),
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
            return self._storage.run(move)

    def oldest(self) -> messages.Report | None:
        """Return the oldest batch that is not confirmed."""
        while True:
            rows = self._batches(1)
            if not rows:
                return None
            ((batch, body),) = rows
            try:
                return messages.Report.from_dict(journal_records.parse(body))
            except journal_records.UNREADABLE as problem:
                self._records.set_aside('outbox', str(batch), body, problem)
                self.confirm(batch)

    def confirm(self, batch: int) -> None:
        """Delete a batch that the collector has stored."""

        def delete(db: sqlite3.Connection) -> None:
            db.execute('DELETE FROM outbox WHERE batch = ?', (batch,))
            self._raise_floor(db, batch)

        self._storage.run(delete)

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

                self._storage.run(delete)
            if self._storage.degraded:
                dropped += self._storage.run(_trim_memory)
        found = []
        for _, body in dropped:
            try:
                found.append(
                    messages.Report.from_dict(journal_records.parse(body))
                )
            except journal_records.UNREADABLE:
                continue
        return found

    def waiting(self) -> int:
        """Return how many batches are not confirmed."""
        with self._storage.lock:
            count = self._storage.rows('SELECT COUNT(*) FROM outbox')[0][0]
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
                rows += self._storage.rows(query, -1, most - len(rows))
            return rows

    def _floor(self) -> int:
        return self._records.number(transfer.FLOOR)

    def _raise_floor(self, db: sqlite3.Connection, batch: int) -> None:
        # The file's rows cannot be deleted; up to here they are finished.
        if self._storage.degraded:
            journal_records.set_number(
                db,
                transfer.FLOOR,
                max(batch, journal_records.number(db, transfer.FLOOR)),
            )


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
