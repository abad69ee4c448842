# SPDX-License-Identifier: Apache-2.0

"""Store batches of samples, those that come together in one transaction.

Most batches carry samples and nothing else, and a transaction costs more
than the samples of one batch. So whoever has such a batch joins a queue;
the first one stores for all that are in it, while the next ones gather.
Nobody waits for company: a batch that comes alone is stored at once. When
it is stored, the first of those who gathered meanwhile is told to store for
all of them. (A mutex would let in whoever comes first: those who are done,
one by one, or one more with nothing but its own batch.)

The rules of :mod:`vsched_api.operations.reports` hold for each batch as if
it were stored by itself.
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
    """A batch in the queue; ``reply`` is None when it is none for here.

    :param told: set when the batch is done, or when its owner is to store.
    """

    batch: inspection.Batch
    now: float
    told: threading.Event = dataclasses.field(default_factory=threading.Event)
    done: bool = False
    reply: messages.ReportReply | None = None
    problem: db_errors.DatabaseUnavailable | None = None


class Gathering:
    """The queue of one process. Safe from any thread.

    :param warn_s: by how much a host's clock must differ for an event.
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
        :returns: None when it has to be stored by itself: its host is new,
            or something that came with it could not be stored.
        :raises errors.DatabaseUnavailable: when it is not known to be
            stored.
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
        # One of each host: two are the same batch, sent again.
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
            # Else whoever of them waits for a lock must not fail the rest.
        except db_errors.UnstorableValue:
            # Whose it is shows when each is stored by itself.
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
            # It changes more of the host's row than these do.
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
