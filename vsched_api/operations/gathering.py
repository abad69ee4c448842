# SPDX-License-Identifier: Apache-2.0

"""Store batches, concurrent ones in one transaction.

A transaction costs more than the samples of one batch, and one that holds the
counters blocks all that need them. Threads with batches join a queue. The
first thread stores all batches that are queued, while the next ones queue up.
A batch that arrives alone is stored at once. After the transaction the first
thread of the queue is woken to store all that are queued by then. (A mutex
would wake an arbitrary thread: one whose batch is stored already, or one that
then stores its own batch only.)

A transaction costs about the same whether it stores one batch or ten. Under
load the first thread therefore waits before it stores: until as many batches
are queued as there were at once during the last second, those being stored
included, or until :data:`MAX_WAIT_S` after the end of the transaction before.
A host that reports alone never waits.

The rules of :mod:`vsched_api.operations.reports` hold for each batch as if it
were stored by itself.
"""

import collections
from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_api.db import errors as db_errors
from vsched_api.db import session as db
from vsched_api.operations import inspection
from vsched_lib.contract import collector_replies

LOG = logging.getLogger(__name__)

#: How long after the end of a transaction the next one waits for batches at
#: most, in seconds.
MAX_WAIT_S = 0.05
#: For how long it is remembered how many batches there were at once, in
#: seconds.
MEMORY_S = 1.0


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """A queued batch; ``reply`` stays None if it must be stored elsewhere.

    :param now: when it came, in seconds since the epoch.
    :param woken: set when the batch is done, or when its thread must store.
    """

    batch: inspection.Batch
    now: float
    woken: threading.Event = dataclasses.field(default_factory=threading.Event)
    done: bool = False
    reply: collector_replies.ReportReply | None = None
    problem: db_errors.DatabaseUnavailable | None = None


#: Stores batches, each of another host. Returns the reply to each, None for
#: those that must be stored elsewhere.
Store = Callable[
    [ty.Any, Sequence[Entry]], Sequence[collector_replies.ReportReply | None]
]


class _Peak:
    """The largest of the numbers that were seen during the last second."""

    def __init__(self) -> None:
        # The largest one, the largest one after it, and so on.
        self._seen: collections.deque[tuple[float, int]] = collections.deque()

    def see(self, at_s: float, number: int) -> None:
        """Take a number."""
        while self._seen and self._seen[-1][1] <= number:
            self._seen.pop()
        self._seen.append((at_s, number))

    def get(self, now_s: float) -> int:
        """Return the largest number; 0 without any."""
        while self._seen and self._seen[0][0] < now_s - MEMORY_S:
            self._seen.popleft()
        return self._seen[0][1] if self._seen else 0


class Gathering:
    """The queue of one process. Safe from any thread.

    :param store: called in a transaction.
    :param limit: how many batches one transaction stores at most.
    :param clock: steady, in seconds.
    :param wait: waits for an event for up to a number of seconds.
    """

    def __init__(
        self,
        database: db.Database,
        store: Store,
        limit: int,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[
            [threading.Event, float], object
        ] = threading.Event.wait,
    ) -> None:
        self._database = database
        self._store = store
        self._limit = limit
        self._clock = clock
        self._wait = wait
        self._queue: list[Entry] = []
        self._lock = threading.Lock()
        self._storing = False
        #: How many batches the transaction in progress stores.
        self._stored_now = 0
        self._peak = _Peak()
        #: When the latest transaction ended, by the clock.
        self._ended_s: float | None = None
        #: Set when as many batches are queued as are waited for.
        self._enough = threading.Event()
        self._wanted = 0

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
            self._see()
            waits, self._storing = self._storing, True
            if len(self._queue) >= self._wanted:
                self._enough.set()
        if waits:
            entry.woken.wait()
        if not entry.done:
            try:
                self._await_others()
                self._store_all(self._take(entry))
            finally:
                self._pass_on()
        if entry.problem is not None:
            raise entry.problem
        return entry.reply

    def _see(self) -> None:
        self._peak.see(self._clock(), len(self._queue) + self._stored_now)

    def _await_others(self) -> None:
        """Wait until a transaction is worth its cost."""
        with self._lock:
            if self._ended_s is None:
                return
            now_s = self._clock()
            left_s = self._ended_s + MAX_WAIT_S - now_s
            self._wanted = min(self._limit, self._peak.get(now_s))
            if left_s <= 0 or len(self._queue) >= self._wanted:
                return
            self._enough.clear()
        self._wait(self._enough, left_s)

    def _pass_on(self) -> None:
        with self._lock:
            self._see()
            self._stored_now = 0
            self._ended_s = self._clock()
            if self._queue:
                self._queue[0].woken.set()
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
            self._stored_now = len(taken)
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
                entry.woken.set()
