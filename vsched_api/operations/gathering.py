# SPDX-License-Identifier: Apache-2.0

"""Store batches of samples, concurrent ones in one transaction.

Most batches carry only samples, and a transaction costs more than the samples
of one batch. Threads with such batches join a queue. The first thread stores
all batches that are queued, while the next ones queue up. A batch that arrives
alone is stored at once. After the transaction the first thread of the queue is
woken to store all that are queued by then. (A mutex would wake an arbitrary
thread: one whose batch is stored already, or one that then stores its own
batch only.)

The rules of :mod:`vsched_api.operations.reports` hold for each batch as if it
were stored by itself.
"""

from collections.abc import Sequence
import dataclasses
import threading
import typing as ty

from vsched_api.db import errors as db_errors
from vsched_api.db.queries import host_time
from vsched_api.db.queries import hosts
from vsched_api.db.queries import usage
from vsched_api.db import session as db
from vsched_api.operations import clocks
from vsched_api.operations import inspection
from vsched_api.operations import numbering
from vsched_lib.contract import messages

#: How many batches one transaction stores at most. More make it longer, and
#: hardly cheaper.
MAX_BATCHES = 32


@dataclasses.dataclass(slots=True, eq=False)
class _Entry:
    """A queued batch; ``reply`` stays None if it must be stored elsewhere.

    :param told: set when the batch is done, or when its thread must store.
    """

    batch: inspection.Batch
    now: float
    told: threading.Event = dataclasses.field(default_factory=threading.Event)
    done: bool = False
    reply: messages.ReportReply | None = None
    problem: db_errors.DatabaseUnavailable | None = None


class Gathering:
    """The queue of one process. Safe from any thread.

    :param warn_s: the clock difference from which on an event is stored.
    """

    def __init__(
        self, database: db.Database, warn_s: float = clocks.WARN_S
    ) -> None:
        self._database = database
        self._warn_s = warn_s
        self._queue: list[_Entry] = []
        self._lock = threading.Lock()
        self._storing = False

    def store(
        self, batch: inspection.Batch, now: float
    ) -> messages.ReportReply | None:
        """Store a batch of samples, unless it is stored already.

        :param now: seconds since the epoch.
        :returns: None when the batch must be stored in its own transaction:
            its host is new, or a batch of the same transaction cannot be
            stored.
        :raises errors.DatabaseUnavailable: when it is not known to be stored.
        """
        entry = _Entry(batch, now)
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

    def _take(self, mine: _Entry) -> Sequence[_Entry]:
        # One batch per host: a second one is a repetition of the first.
        taken = {mine.batch.host: mine}
        with self._lock:
            for entry in self._queue:
                if len(taken) < MAX_BATCHES:
                    taken.setdefault(entry.batch.host, entry)
            self._queue = [
                entry
                for entry in self._queue
                if taken.get(entry.batch.host) is not entry
            ]
        return list(taken.values())

    def _store_all(self, entries: Sequence[_Entry]) -> None:
        try:
            replies = self._database.write(
                lambda session: _store(session, entries, self._warn_s)
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
        except db_errors.UnstorableValue:
            # Each is stored by itself then, which isolates the bad one.
            pass
        finally:
            for entry in entries:
                entry.done = True
                entry.told.set()


def _store(
    session: ty.Any, entries: Sequence[_Entry], warn_s: float
) -> list[messages.ReportReply | None]:
    found = hosts.lock_many(session, {one.batch.host for one in entries})
    replies: list[messages.ReportReply | None] = []
    samples, times, stored = {}, {}, {}
    for entry in entries:
        batch, host = entry.batch, found.get(entry.batch.host)
        if host is None:
            replies.append(None)
            continue
        if clocks.worth_an_event(host.clock_skew_s, batch.skew_s, warn_s):
            replies.append(None)
            continue
        place = numbering.of_current(host, batch.epoch, batch.number)
        if place is None or (place.number != batch.number + host.batch_offset):
            # It changes more columns of the host's row than hosts.advance().
            replies.append(None)
            continue
        if place.new:
            stored[host.id] = place.number, batch.at, batch.skew_s
            samples[host.id, place.number] = batch.usage
            times[host.id, place.number] = batch.host_time
        replies.append(numbering.reply(host, batch.epoch, place))
    if stored:
        usage.add(session, samples)
        host_time.add(session, times)
        hosts.advance(session, stored, max(one.now for one in entries))
    return replies
