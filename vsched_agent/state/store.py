# SPDX-License-Identifier: Apache-2.0

"""The agent's journal: the state that outlives its process.

One SQLite file has the prior state of each thread that vsched changed, the
ballooned instances, the divided periods, the operators' overrides, the last
report of each reservation, and the batches that the collector has not
confirmed. A record is written before the change it describes, so that the
next agent can continue or undo the work of a killed one.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import json
import sqlite3
import typing as ty

from vsched_agent.state import outbox
from vsched_agent.state import records
from vsched_agent.state import storage
from vsched_lib.contract import balloons
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages


class Prior(ty.NamedTuple):
    """The state of one thread before vsched changed it.

    :param pid: the thread's process; on Xen a number of the domain, which
        another boot of the instance does not have.
    :param found: in the backend's own format, see ``Backend.prior``.
    """

    pid: int
    found: Mapping[str, ty.Any]


class Journal:
    """The agent's persistent state. Safe from any thread.

    A record that cannot be read is set aside, see :mod:`records`. While the
    file cannot be written, see :mod:`storage`.

    :param path: the file, created with its folder if missing.
    :ivar outbox: the batches that the collector has not confirmed.
    :raises schema.NewerJournal: when a newer agent has written it.
    """

    def __init__(self, path: str) -> None:
        self._storage = storage.Storage(path)
        self._records = records.Records(self._storage)
        self.outbox = outbox.Outbox(self._storage, self._records)

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

    # Prior state of threads

    def begin_boot(self, boot_id: str) -> int:
        """Forget the prior state of threads of an earlier boot of the host.

        They have ended, and the numbers of threads and of Xen's domains
        begin again with each boot.

        :param boot_id: of the running kernel; empty if it is not known, which
            forgets nothing.
        :returns: the number of threads that were forgotten.
        """

        def begin(db: sqlite3.Connection) -> int:
            known = db.execute('SELECT boot_id FROM host_boot').fetchone()
            if known == (boot_id,):
                return 0
            forgotten = 0
            if known is not None:
                forgotten = db.execute('DELETE FROM prior').rowcount
            db.execute(
                'INSERT OR REPLACE INTO host_boot VALUES (1, ?)', (boot_id,)
            )
            return forgotten

        return self._storage.run(begin) if boot_id else 0

    def priors(self, instance_uuid: str, backend: str) -> dict[int, Prior]:
        """Return each thread's state before a backend changed it.

        A record that cannot be read is empty: restoring it gives the thread
        the kernel's defaults.
        """
        found = {}
        for row, tid, pid, text in self._storage.rows(
            'SELECT rowid, tid, pid, found FROM prior WHERE'
            ' instance_uuid = ? AND backend = ?',
            instance_uuid,
            backend,
        ):
            key = '%s %s %s' % (instance_uuid, backend, tid)
            if not (isinstance(tid, int) and isinstance(pid, int)):
                self._records.set_aside(
                    'prior',
                    key,
                    text,
                    TypeError('thread %r of process %r' % (tid, pid)),
                    'DELETE FROM prior WHERE rowid = ?',
                    row,
                )
                continue
            try:
                prior = records.parse(text)
            except records.UNREADABLE as problem:
                self._records.set_aside(
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
        return self._storage.rows(
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

        self._storage.run(keep)

    def forget(self, instance_uuid: str, backend: str | None = None) -> None:
        """Delete records of threads that were restored or have ended."""
        if backend is None:
            self._storage.run(
                lambda db: db.execute(
                    'DELETE FROM prior WHERE instance_uuid = ?',
                    (instance_uuid,),
                )
            )
        else:
            self._storage.run(
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
        self._storage.run(
            lambda db: db.executemany(
                'DELETE FROM prior WHERE instance_uuid = ?'
                ' AND backend = ? AND tid = ?',
                rows,
            )
        )

    # Balloons

    def balloons(self) -> list[Mapping[str, ty.Any]]:
        """Return the records of instances with vCPUs taken offline."""
        return self._records.bodies('balloon', records.parse)

    def note_balloon(
        self, instance_uuid: str, body: Mapping[str, ty.Any]
    ) -> None:
        """Record that vCPUs of an instance are to be taken offline."""
        text = json.dumps(dict(body))
        self._storage.run(
            lambda db: db.execute(
                'INSERT OR REPLACE INTO balloon VALUES (?, ?)',
                (instance_uuid, text),
            )
        )

    def forget_balloon(self, instance_uuid: str) -> None:
        """Delete the record of an instance with all vCPUs online."""
        self._storage.run(
            lambda db: db.execute(
                'DELETE FROM balloon WHERE instance_uuid = ?', (instance_uuid,)
            )
        )

    # Granularities

    def granularities(self) -> list[Mapping[str, ty.Any]]:
        """Return the records of instances whose periods are divided."""
        return self._records.bodies('granularity', records.parse)

    def note_granularity(
        self, instance_uuid: str, body: Mapping[str, ty.Any]
    ) -> None:
        """Record that periods of an instance are to be divided."""
        text = json.dumps(dict(body))
        self._storage.run(
            lambda db: db.execute(
                'INSERT OR REPLACE INTO granularity VALUES (?, ?)',
                (instance_uuid, text),
            )
        )

    def forget_granularity(self, instance_uuid: str) -> None:
        """Delete the record of an instance with undivided periods."""
        self._storage.run(
            lambda db: db.execute(
                'DELETE FROM granularity WHERE instance_uuid = ?',
                (instance_uuid,),
            )
        )

    # Overrides

    def overrides(self) -> collector_replies.Overrides:
        """Return the operators' overrides as last received.

        When one of them cannot be read the generation is invalid, so that
        all are fetched from the collector again.
        """
        with self._storage.lock:
            overrides = self._records.bodies(
                'override',
                lambda text: collector_replies.Override.from_dict(
                    records.parse(text)
                ),
                _FORGET_OVERRIDES,
            )
            orders = self._records.bodies(
                'balloon_order',
                lambda text: balloons.BalloonOrder.from_dict(
                    records.parse(text)
                ),
                _FORGET_OVERRIDES,
            )
            return collector_replies.Overrides(
                self.overrides_generation(), tuple(overrides), tuple(orders)
            )

    def overrides_generation(self) -> int:
        """Return the generation of the overrides as last received."""
        return self._records.number('overrides_generation')

    def replace_overrides(
        self, overrides: collector_replies.Overrides
    ) -> None:
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
            records.set_number(
                db, 'overrides_generation', overrides.generation
            )

        self._storage.run(replace)

    # Reports

    def reservations(self) -> dict[str, messages.ReservationReport]:
        """Return the last report of each instance's reservation."""
        return {
            one.instance_uuid: one
            for one in self._records.bodies(
                'reservation',
                lambda text: messages.ReservationReport.from_dict(
                    records.parse(text)
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

        self._storage.run(note)


#: Sets a generation that the collector never uses.
_FORGET_OVERRIDES = (
    "INSERT OR REPLACE INTO meta VALUES ('overrides_generation', -1)",
)
