# SPDX-License-Identifier: Apache-2.0

"""Store batches, concurrent ones in one transaction.

A transaction costs more than the samples of one batch, and one that holds the
counters blocks all that need them. Threads with batches join a queue. The
first thread stores all batches that are queued, while the next ones queue up.
A batch that arrives alone is stored at once. After the transaction the first
thread of the queue is woken to store all that are queued by then. (A mutex
would wake an arbitrary thread: one whose batch is stored already, or one that
then stores its own batch only.)

The rules of :mod:`vsched_api.operations.reports` hold for each batch as if it
were stored by itself.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import threading
import typing as ty

from oslo_log import log as logging

from vsched_api.db import errors as db_errors
from vsched_api.db import session as db
from vsched_api.operations import inspection
from vsched_lib.contract import collector_replies

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """A queued batch; ``reply`` stays None if it must be stored elsewhere.

    :param now: when it came, in seconds since the epoch.
    :param told: set when the batch is done, or when its thread must store.
    """

    batch: inspection.Batch
    now: float
    told: threading.Event = dataclasses.field(default_factory=threading.Event)
    done: bool = False
    reply: collector_replies.ReportReply | None = None
    problem: db_errors.DatabaseUnavailable | None = None


#: Stores batches, each of another host. Returns the reply to each, None for
#: those that must be stored elsewhere.
Store = Callable[
    [ty.Any, Sequence[Entry]], Sequence[collector_replies.ReportReply | None]
]


class Gathering:
    """The queue of one process. Safe from any thread.

    :param store: called in a transaction.
    :param limit: how many batches one transaction stores at most.
    """

    def __init__(
        self, database: db.Database, store: Store, limit: int
    ) -> None:
        self._database = database
        self._store = store
        self._limit = limit
        self._queue: list[Entry] = []
        self._lock = threading.Lock()
        self._storing = False

    def store(
        self, batch: inspection.Batch, now: float
    ) -> collector_replies.ReportReply | None:
        """Store a batch, unless it is stored already.

        :param now: seconds since the epoch.
        :returns: None when the batch must be stored in its own transaction,
            also because another one of the same transaction cannot be stored.
        :raises errors.DatabaseUnavailable: when it is not known to be stored.
        """
        entry = Entry(batch, now)
        with self._lock:
            self._queue.append(entry)
            waits, self._storing = self._storing, True
        if waits:
            entry.told.wait()
        if not entry.done:
            try:
                self._store_all(self._take(entry))
            finally:
                self._pass_on()
        if entry.problem is not None:
            raise entry.problem
        return entry.reply

    def _pass_on(self) -> None:
        with self._lock:
            if self._queue:
                self._queue[0].told.set()
            else:
                self._storing = False

    def _take(self, mine: Entry) -> Sequence[Entry]:
        # One batch per host: a second one is a repetition of the first.
        taken = {mine.batch.host: mine}
        with self._lock:
            for entry in self._queue:
                if len(taken) < self._limit:
                    taken.setdefault(entry.batch.host, entry)
            self._queue = [
                entry
                for entry in self._queue
                if taken.get(entry.batch.host) is not entry
            ]
        return list(taken.values())

    def _store_all(self, entries: Sequence[Entry]) -> None:
        try:
            replies = self._database.write(
                lambda session: self._store(session, entries)
            )
            for entry, reply in zip(entries, replies, strict=True):
                entry.reply = reply
        except db_errors.DatabaseUnavailable as problem:
            if len(entries) == 1 or not isinstance(
                problem, db_errors.DatabaseBusy
            ):
                for entry in entries:
                    entry.problem = problem
            # Otherwise one batch that waits for a lock must not fail the rest.
        except Exception as problem:
            # Each is stored by itself then, which isolates the bad one. A
            # defect that one meets must not be the answer to another host.
            if not isinstance(problem, db_errors.UnstorableValue):
                LOG.exception(
                    'Batches of %s are stored one by one',
                    ', '.join(sorted(one.batch.host for one in entries)),
                )
        finally:
            for entry in entries:
                entry.done = True
                entry.told.set()
