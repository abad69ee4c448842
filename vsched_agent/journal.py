# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the agent must remember over its own death.

One SQLite file: what was found on each thread before vsched touched it, the
instances that vCPUs were taken from, the operators' overrides, the last
report of each reservation, and the batches the collector has not confirmed
yet. Everything is written before the act it belongs to, so that a killed
agent can always take up or undo its work.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import json
import os
import sqlite3
import threading
import time
import typing as ty

from vsched_lib.contract import balloons
from vsched_lib.contract import messages

_SCHEMA = """
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
"""


class Prior(ty.NamedTuple):
    """What was found on one thread.

    :param pid: the process the thread belonged to.
    :param found: the backend's own words, see ``Backend.prior``.
    """

    pid: int
    found: Mapping[str, ty.Any]


class Journal:
    """The agent's memory. Safe from any thread.

    :param path: the file, created with its folder if missing.
    """

    def __init__(self, path: str) -> None:
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, mode=0o750, exist_ok=True)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            path, check_same_thread=False, isolation_level=None)
        # A killed process loses nothing in this mode, only a power cut
        # could, and that ends the instances as well.
        self._db.execute('PRAGMA journal_mode=WAL')
        self._db.execute('PRAGMA synchronous=NORMAL')
        self._db.executescript(_SCHEMA)
        # Numbers that start at the clock are never used twice, even when
        # the journal was lost with the disk.
        self._db.execute(
            'INSERT OR IGNORE INTO meta VALUES (?, ?)',
            ('batch', int(time.time() * 1000)))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute('BEGIN IMMEDIATE')
            try:
                yield self._db
            except BaseException:
                self._db.execute('ROLLBACK')
                raise
            self._db.execute('COMMIT')

    def _rows(self, query: str, *arguments: ty.Any) -> list[ty.Any]:
        with self._lock:
            return self._db.execute(query, arguments).fetchall()

    # What was found

    def priors(self, instance_uuid: str,
               backend: str) -> dict[int, Prior]:
        """By thread, what was found before a backend touched it."""
        return {tid: Prior(pid, json.loads(found)) for tid, pid, found in
                self._rows('SELECT tid, pid, found FROM prior WHERE'
                           ' instance_uuid = ? AND backend = ?',
                           instance_uuid, backend)}

    def touched(self) -> list[tuple[str, str]]:
        """Every (instance, backend) that has something to put back."""
        return self._rows('SELECT DISTINCT instance_uuid, backend FROM prior'
                          ' ORDER BY instance_uuid, backend')

    def remember(self, instance_uuid: str, backend: str, pid: int,
                 found: Mapping[int, Mapping[str, ty.Any]]) -> None:
        """Keep what was found; what is kept already is not overwritten."""
        with self._transaction() as db:
            # Threads of an earlier process of the instance are gone.
            db.execute('DELETE FROM prior WHERE instance_uuid = ?'
                       ' AND pid != ?', (instance_uuid, pid))
            db.executemany(
                'INSERT OR IGNORE INTO prior VALUES (?, ?, ?, ?, ?)',
                [(instance_uuid, backend, pid, tid, json.dumps(dict(value)))
                 for tid, value in found.items()])

    def forget(self, instance_uuid: str, backend: str | None = None) -> None:
        """What was found has been put back, or its threads are gone."""
        with self._transaction() as db:
            if backend is None:
                db.execute('DELETE FROM prior WHERE instance_uuid = ?',
                           (instance_uuid,))
            else:
                db.execute('DELETE FROM prior WHERE instance_uuid = ?'
                           ' AND backend = ?', (instance_uuid, backend))

    def forget_threads(self, instance_uuid: str, backend: str,
                       tids: Iterable[int]) -> None:
        """What was found on some threads has been put back."""
        with self._transaction() as db:
            db.executemany(
                'DELETE FROM prior WHERE instance_uuid = ?'
                ' AND backend = ? AND tid = ?',
                [(instance_uuid, backend, tid) for tid in tids])

    # Balloons

    def balloons(self) -> list[Mapping[str, ty.Any]]:
        """Instances that have fewer vCPUs than they are configured for."""
        return [json.loads(body) for body, in self._rows(
            'SELECT body FROM balloon ORDER BY instance_uuid')]

    def note_balloon(self, instance_uuid: str,
                     body: Mapping[str, ty.Any]) -> None:
        """vCPUs of an instance are about to be taken."""
        with self._transaction() as db:
            db.execute('INSERT OR REPLACE INTO balloon VALUES (?, ?)',
                       (instance_uuid, json.dumps(dict(body))))

    def forget_balloon(self, instance_uuid: str) -> None:
        """An instance has all of its vCPUs again."""
        with self._transaction() as db:
            db.execute('DELETE FROM balloon WHERE instance_uuid = ?',
                       (instance_uuid,))

    # Overrides

    def overrides(self) -> messages.Overrides:
        """The operators' overrides as last heard."""
        with self._lock:
            return messages.Overrides(
                self.overrides_generation(),
                tuple(messages.Override.from_dict(json.loads(body))
                      for body, in self._rows('SELECT body FROM override')),
                tuple(balloons.BalloonOrder.from_dict(json.loads(body))
                      for body, in self._rows(
                          'SELECT body FROM balloon_order')))

    def overrides_generation(self) -> int:
        """The generation of the overrides as last heard."""
        return self._number('overrides_generation')

    def replace_overrides(self, overrides: messages.Overrides) -> None:
        """Take over the whole set."""
        with self._transaction() as db:
            db.execute('DELETE FROM override')
            db.executemany('INSERT INTO override VALUES (?, ?)', [
                (one.instance_uuid, json.dumps(one.to_dict()))
                for one in overrides.overrides])
            db.execute('DELETE FROM balloon_order')
            db.executemany('INSERT INTO balloon_order VALUES (?, ?)', [
                (one.instance_uuid, json.dumps(one.to_dict()))
                for one in overrides.balloons])
            self._set_number('overrides_generation', overrides.generation)

    # Reports

    def reservations(self) -> dict[str, messages.ReservationReport]:
        """By instance, the last report of its reservation."""
        return {uuid: messages.ReservationReport.from_dict(json.loads(body))
                for uuid, body in self._rows('SELECT * FROM reservation')}

    def note_reservations(
            self, changed: Iterable[messages.ReservationReport],
            gone: Iterable[str] = ()) -> None:
        """Keep the newest report of each; drop those of gone instances."""
        with self._transaction() as db:
            db.executemany('INSERT OR REPLACE INTO reservation VALUES (?, ?)',
                           [(one.instance_uuid, json.dumps(one.to_dict()))
                            for one in changed])
            db.executemany('DELETE FROM reservation WHERE instance_uuid = ?',
                           [(uuid,) for uuid in gone])

    # Outbox

    def post(self, make: ty.Callable[[int], messages.Report]) -> int:
        """Number a batch and keep it until it is confirmed.

        :param make: builds the batch for its number.
        :returns: the number.
        """
        with self._transaction() as db:
            batch = self._number('batch') + 1
            self._set_number('batch', batch)
            db.execute('INSERT INTO outbox VALUES (?, ?)', (
                batch, json.dumps(make(batch).to_dict())))
        return batch

    def oldest(self) -> messages.Report | None:
        """The oldest batch that is not confirmed."""
        for body, in self._rows(
                'SELECT body FROM outbox ORDER BY batch LIMIT 1'):
            return messages.Report.from_dict(json.loads(body))
        return None

    def confirm(self, batch: int) -> None:
        """The collector has stored this batch for good."""
        with self._transaction() as db:
            db.execute('DELETE FROM outbox WHERE batch = ?', (batch,))

    def trim(self, most: int) -> list[messages.Report]:
        """Drop the oldest batches above ``most``.

        :returns: the dropped ones, oldest first.
        """
        with self._transaction() as db:
            surplus = self.waiting() - most
            if surplus <= 0:
                return []
            rows = db.execute(
                'SELECT batch, body FROM outbox ORDER BY batch LIMIT ?',
                (surplus,)).fetchall()
            db.execute('DELETE FROM outbox WHERE batch <= ?', (rows[-1][0],))
        return [messages.Report.from_dict(json.loads(body))
                for _, body in rows]

    def waiting(self) -> int:
        """How many batches are not confirmed."""
        return self._rows('SELECT COUNT(*) FROM outbox')[0][0]

    def _number(self, key: str) -> int:
        rows = self._rows('SELECT value FROM meta WHERE key = ?', key)
        return rows[0][0] if rows else 0

    def _set_number(self, key: str, value: int) -> None:
        self._db.execute(
            'INSERT OR REPLACE INTO meta VALUES (?, ?)', (key, value))
