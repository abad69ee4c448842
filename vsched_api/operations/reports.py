# SPDX-License-Identifier: Apache-2.0

"""Store agents' reports, each batch exactly once.

A batch is one transaction. It locks the host's row first: of two collectors
with the same batch, one waits for the lock and then finds the batch stored.

**An instance that moves.** The list of each host is stored separately. During
a migration both hosts list the instance. It counts as being on the host that
began to list it last, and if that host drops it, as after a failed migration,
on the other one. Neither the order in which two agents report nor a repeated
list matters. When a host drops an instance, its reservation there is released.
An override belongs to the instance: it stays and applies on every host that
lists the instance. Each arrival and departure of such an instance gives the
host's overrides a new generation, so that its agent fetches them.

**A batch that cannot be stored.** An agent repeats a batch until it gets a
reply. A batch that can never be stored would block all that follow. It gets
the reply of a stored batch, an event lists what was lost, and the reply
requests a full report. When the database is unavailable there is no reply, and
the agent keeps the batch.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import functools
import typing as ty

from oslo_log import log as logging

from vsched_api.db import errors as db_errors
from vsched_api.db import models
from vsched_api.db.queries import balloon_changes
from vsched_api.db.queries import balloons
from vsched_api.db.queries import counters
from vsched_api.db.queries import events
from vsched_api.db.queries import host_time
from vsched_api.db.queries import hosts
from vsched_api.db.queries import instances
from vsched_api.db.queries import overrides
from vsched_api.db.queries import profiles
from vsched_api.db.queries import usage
from vsched_api.db import session as db
from vsched_api.operations import clocks
from vsched_api.operations import gathering
from vsched_api.operations import inspection
from vsched_api.operations import jobs
from vsched_api.operations import notices
from vsched_api.operations import numbering
from vsched_api.operations import plausibility
from vsched_api.operations import reported_instances
from vsched_api.operations import sample_batches
from vsched_api.operations import snapshot
from vsched_api.operations import verifications
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)

_SECONDS_PER_DAY = 86_400

_TWO_JOURNALS = (
    'a report came from a journal that another one had followed: either a '
    'journal was restored from a copy, or two agents report as this host'
)


#: How many batches with more than samples one transaction stores at most. It
#: holds the counters, which whoever sets an override waits for.
_MAX_BATCHES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What reports are held against.

    :param skew_warning_s: the clock difference from which on an event is
        stored.
    :param max_cpus: the maximum number of CPUs of a host.
    """

    skew_warning_s: float = clocks.WARN_S
    max_cpus: int = plausibility.MAX_CPUS


class Storage:
    """Stores the reports of one process. Safe from any thread."""

    def __init__(
        self, database: db.Database, limits: Limits = Limits()
    ) -> None:
        self._database = database
        self._limits = limits
        self._samples = gathering.Gathering(
            database,
            functools.partial(
                sample_batches.store, warn_s=limits.skew_warning_s
            ),
            sample_batches.MAX_BATCHES,
        )
        self._others = gathering.Gathering(
            database,
            functools.partial(_store_many, limits=limits),
            _MAX_BATCHES,
        )

    def store(
        self,
        report: messages.Report,
        now: float,
        on_reject: Callable[[], None] = lambda: None,
    ) -> collector_replies.ReportReply:
        """Store a batch, unless it is stored already.

        :param now: the collector's clock, in seconds since the epoch.
        :param on_reject: called when the batch can never be stored.
        :raises vsched_api.db.errors.DatabaseUnavailable: when it is not known
            to be stored.
        """
        try:
            batch = inspection.rows(report, now)
            queue = self._samples if batch.plain else self._others
            return queue.store(batch, now) or self._store_alone(batch, now)
        except (wire.MalformedMessage, db_errors.UnstorableValue) as problem:
            on_reject()
            return reject(self._database, report.to_dict(), problem, now)

    def _store_alone(
        self, batch: inspection.Batch, now: float
    ) -> collector_replies.ReportReply:
        if not batch.plain:
            # Wait for the host's row without the counters: a transaction that
            # holds them blocks the reports of all other hosts.
            self._database.write(
                lambda session: hosts.lock(session, batch.host)
            )
        return self._database.write(
            lambda session: _store_one(session, batch, now, self._limits)
        )


def reject(
    database: db.Database, raw: object, problem: Exception, now: float
) -> collector_replies.ReportReply:
    """Reply to a batch that can never be stored, and store an event.

    :param raw: the report as received.
    :raises wire.MalformedMessage: when the host or the number of the batch
        cannot be read: there is no reply then.
    :raises vsched_api.db.errors.DatabaseUnavailable: when the event is not
        known to be stored.
    """
    try:
        origin = messages.ReportOrigin.from_dict(raw)
    except wire.MalformedMessage:
        raise wire.MalformedMessage(str(problem)) from None
    host, number = origin.host, origin.batch
    detail = wire.clean('Batch %d was not stored: %s' % (number, problem))
    LOG.error('Host %s: %s', host, detail)
    # One event a day for each field: a full report may have the same problem
    # with another value.
    field = str(problem).partition(':')[0]
    event = {
        'uuid': notices.event_uuid(host, field, int(now // _SECONDS_PER_DAY)),
        'at': now,
        'code': errors.Code.REPORT_REJECTED.value,
        'severity': messages.Severity.ERROR.value,
        'detail': detail,
        'instance_uuid': None,
        'figures': {'batch': number},
    }

    def work(session: ty.Any) -> collector_replies.ReportReply:
        row = hosts.lock(session, host) or hosts.add(session, host)
        place = _place(session, row, origin.epoch, number, origin.after, now)
        reply = numbering.reply(row, origin.epoch, place)
        if not place.new:
            return reply
        row.received_at = now
        events.add(session, [{'host_id': row.id, **event}])
        return dataclasses.replace(reply, resync=True)

    return database.write(work)


def _place(
    session: ty.Any,
    host: models.Host,
    epoch: str | None,
    number: int,
    after: int | None,
    now: float,
) -> numbering.Place:
    """Return a batch's place, and update the host's row if it is stored."""
    place = numbering.of(host, host.replaced_epochs, epoch, number, after)
    if place.new:
        numbering.advance(host, epoch, number, place)
    elif place.state is collector_replies.EpochState.REPLACED:
        notices.add(
            session,
            host,
            now,
            errors.Code.JOURNAL_REPLACED,
            messages.Severity.WARNING,
            _TWO_JOURNALS,
            {'batch': number, 'epoch': epoch},
        )
    return place


def _store_many(
    session: ty.Any, entries: Sequence[gathering.Entry], limits: Limits
) -> list[collector_replies.ReportReply | None]:
    """Store batches in one transaction.

    :param entries: each of another host.
    :returns: None for each whose host is busy.
    """
    numbers = _Numbers.take(session, entries)
    replies: list[collector_replies.ReportReply | None] = []
    for entry in entries:
        name = entry.batch.host
        host = hosts.lock_if_free(session, name)
        if host is None and hosts.exists(session, name):
            replies.append(None)
            continue
        replies.append(
            _store(session, host, entry.batch, entry.now, limits, numbers)
        )
    return replies


def _store_one(
    session: ty.Any, batch: inspection.Batch, now: float, limits: Limits
) -> collector_replies.ReportReply:
    numbers = _Numbers.take(session, [gathering.Entry(batch, now)])
    host = hosts.lock(session, batch.host)
    return _store(session, host, batch, now, limits, numbers)


@dataclasses.dataclass(slots=True)
class _Numbers:
    """What a transaction has taken of the counters, and holds.

    :param generation: of overrides.
    :param version: of the snapshot, for the next host that needs one.
    """

    generation: int = 0
    version: int = 0

    @classmethod
    def take(
        cls, session: ty.Any, entries: Sequence[gathering.Entry]
    ) -> '_Numbers':
        """Take what these batches need."""
        numbers = cls()
        if any(one.batch.instances is not None for one in entries):
            numbers.generation = counters.next_override_generation(session)
        versions = sum(_needs_version(one.batch) for one in entries)
        if versions:
            numbers.version = counters.next_snapshot_versions(
                session, max(one.now for one in entries), versions
            )
        return numbers

    def next_version(self) -> int:
        """Return a version for one host."""
        self.version -= 1
        return self.version + 1


def _needs_version(batch: inspection.Batch) -> bool:
    return batch.info is not None or bool(
        batch.profiles or batch.overhead_profiles
    )


def _store(
    session: ty.Any,
    known: models.Host | None,
    batch: inspection.Batch,
    now: float,
    limits: Limits,
    numbers: _Numbers,
) -> collector_replies.ReportReply:
    """Store one batch.

    :param known: the host, locked; None when it is new.
    """
    # No row refers to a host that this transaction adds; none is looked for.
    host = known or hosts.add(session, batch.host)
    place = _place(session, host, batch.epoch, batch.number, batch.after, now)
    if not place.new:
        return numbering.reply(host, batch.epoch, place)
    if place.anew:
        notices.add(
            session,
            host,
            now,
            errors.Code.JOURNAL_NEW,
            messages.Severity.INFO,
            'the agent numbers its reports anew, '
            'from %d: its journal is new or was restored' % batch.number,
            {'batch': batch.number, 'epoch': batch.epoch},
        )
    if batch.skew_s is not None and clocks.worth_an_event(
        host.clock_skew_s, batch.skew_s, limits.skew_warning_s
    ):
        wrong = abs(batch.skew_s) > limits.skew_warning_s
        notices.add(
            session,
            host,
            now,
            errors.Code.CLOCK_SKEWED if wrong else errors.Code.CLOCK_RIGHT,
            messages.Severity.WARNING if wrong else messages.Severity.INFO,
            clocks.describe(batch.skew_s),
            {
                'clock_skew_s': round(batch.skew_s, 3),
                'clock_skew_warning_s': limits.skew_warning_s,
            },
        )
    host.clock_skew_s = batch.skew_s
    host.reported_at = batch.at
    host.received_at = now
    if batch.info is not None:
        info, problems = plausibility.bound(batch.info, limits.max_cpus)
        host.info = (
            verifications.bound(session, host.id, info, now) if known else info
        )
        if problems:
            notices.add(
                session,
                host,
                now,
                errors.Code.HOST_IMPLAUSIBLE,
                messages.Severity.WARNING,
                'the agent tells what is not believed: ' + '; '.join(problems),
                {
                    name: batch.info[name]
                    for name in ('cpus', 'capacity_mcpu', 'admitted_mcpu')
                },
            )
    # Most batches carry only samples and need none of these rows.
    rows = (
        instances.of_host(session, host.id)
        if known
        and (
            batch.instances is not None
            or batch.reservations
            or batch.balloons
            or batch.all_balloons
        )
        else {}
    )
    if batch.instances is not None:
        host.listed_at = now
        # The list of an agent whose clock is ahead must not override later
        # lists of other hosts.
        moved = reported_instances.update_list(
            session, host, rows, batch.instances, min(batch.at, now)
        )
        if overrides.exist(session, moved) or (
            balloons.orders_exist(session, moved)
        ):
            host.overrides_generation = numbers.generation
    reported_instances.put_reservations(
        session, host, rows, batch.reservations, min(batch.at, now)
    )
    reported_instances.put_balloons(session, host, rows, batch)
    balloon_changes.put(session, host.id, batch.balloon_changes, now)
    usage.add(session, {(host.id, place.number): batch.usage})
    host_time.add(session, {(host.id, place.number): batch.host_time})
    events.add(
        session, [{'host_id': host.id, **event} for event in batch.events]
    )
    jobs.record(session, host.id, batch.jobs, now)
    profiles.add(session, models.ErrorProfile, host.id, batch.profiles)
    profiles.add(
        session, models.OverheadProfile, host.id, batch.overhead_profiles
    )
    if _needs_version(batch):
        snapshot.update(
            session,
            host,
            numbers.next_version(),
            measured=bool(batch.profiles or batch.overhead_profiles),
            added=known is None,
        )
    return numbering.reply(
        host,
        batch.epoch,
        place,
        full=batch.info is not None and batch.instances is not None,
    )
