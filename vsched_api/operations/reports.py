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
from collections.abc import Collection
import dataclasses
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
from vsched_api.db.queries import reservations
from vsched_api.db.queries import usage
from vsched_api.db import session as db
from vsched_api.operations import clocks
from vsched_api.operations import gathering
from vsched_api.operations import inspection
from vsched_api.operations import jobs
from vsched_api.operations import notices
from vsched_api.operations import numbering
from vsched_api.operations import plausibility
from vsched_api.operations import snapshot
from vsched_api.operations import verifications
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)

_SECONDS_PER_DAY = 86_400

_TWO_JOURNALS = (
    'a report came from a journal that another one had followed: either a '
    'journal was restored from a copy, or two agents report as this host'
)


def store(
    database: db.Database,
    report: messages.Report,
    now: float,
    together: gathering.Gathering | None = None,
    skew_warning_s: float = clocks.WARN_S,
    max_cpus: int = plausibility.MAX_CPUS,
    on_reject: Callable[[], None] = lambda: None,
) -> messages.ReportReply:
    """Store a batch, unless it is stored already.

    :param now: the collector's clock, in seconds since the epoch.
    :param together: the queue for batches that carry samples only; without it
        each batch is stored in its own transaction.
    :param skew_warning_s: the clock difference from which on an event is
        stored.
    :param max_cpus: the maximum number of CPUs of a host.
    :param on_reject: called when the batch can never be stored.
    :raises vsched_api.db.errors.DatabaseUnavailable: when it is not known to
        be stored.
    """
    try:
        batch = inspection.rows(report, now)
        if together is not None and batch.plain:
            reply = together.store(batch, now)
            if reply is not None:
                return reply
        if not batch.plain:
            # Lock the host's row before the counters: a transaction that holds
            # the counters blocks the reports of all other hosts.
            database.write(lambda session: hosts.lock(session, batch.host))
        return database.write(
            lambda session: _store(
                session, batch, now, skew_warning_s, max_cpus
            )
        )
    except (wire.MalformedMessage, db_errors.UnstorableValue) as problem:
        on_reject()
        return reject(database, report.to_dict(), problem, now)


def reject(
    database: db.Database, raw: object, problem: Exception, now: float
) -> messages.ReportReply:
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

    def work(session: ty.Any) -> messages.ReportReply:
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
    elif place.state is messages.EpochState.REPLACED:
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


def _store(
    session: ty.Any,
    batch: inspection.Batch,
    now: float,
    skew_warning_s: float,
    max_cpus: int,
) -> messages.ReportReply:
    generation = 0
    if batch.instances is not None:
        generation = counters.next_override_generation(session)
    version = None
    if batch.info is not None or batch.profiles or batch.overhead_profiles:
        version = counters.next_snapshot_versions(session, now)
    host = hosts.lock(session, batch.host) or hosts.add(session, batch.host)
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
        host.clock_skew_s, batch.skew_s, skew_warning_s
    ):
        wrong = abs(batch.skew_s) > skew_warning_s
        notices.add(
            session,
            host,
            now,
            errors.Code.CLOCK_SKEWED if wrong else errors.Code.CLOCK_RIGHT,
            messages.Severity.WARNING if wrong else messages.Severity.INFO,
            clocks.describe(batch.skew_s),
            {
                'clock_skew_s': round(batch.skew_s, 3),
                'clock_skew_warning_s': skew_warning_s,
            },
        )
    host.clock_skew_s = batch.skew_s
    host.reported_at = batch.at
    host.received_at = now
    if batch.info is not None:
        info, problems = plausibility.bound(batch.info, max_cpus)
        host.info = verifications.bound(session, host.id, info, now)
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
        if (
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
        moved = _list(session, host, rows, batch.instances, min(batch.at, now))
        if overrides.exist(session, moved) or (
            balloons.orders_exist(session, moved)
        ):
            host.overrides_generation = generation
    _reservations(session, host, rows, batch.reservations, min(batch.at, now))
    _balloons(session, host, rows, batch)
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
    if version is not None:
        snapshot.update(
            session,
            host,
            version,
            measured=bool(batch.profiles or batch.overhead_profiles),
        )
    return numbering.reply(
        host,
        batch.epoch,
        place,
        full=batch.info is not None and batch.instances is not None,
    )


def _list(
    session: ty.Any,
    host: models.Host,
    rows: dict[str, models.Instance],
    listed: dict[str, inspection.Row],
    at: float,
) -> Collection[str]:
    """Update the instances of a host from its list.

    :param rows: the host's instances so far; new ones are added.
    :returns: the instances that arrived or left.
    """
    came, left = [], []
    for instance_uuid, values in listed.items():
        row = rows.get(instance_uuid)
        if row is not None and row.present:
            _tell(row, values)
            continue
        came.append(instance_uuid)
        if row is None:
            row = models.Instance(host_id=host.id, uuid=instance_uuid)
            session.add(row)
            rows[instance_uuid] = row
        else:
            # The reservation of its last stay does not apply to this one.
            reservations.delete(session, [row.id])
        _tell(row, values)
        row.present, row.arrived_at, row.left_at = True, at, None
    for instance_uuid, row in rows.items():
        if row.present and instance_uuid not in listed:
            row.present, row.left_at = False, at
            left.append(row)
    session.flush()
    if left:
        reservations.release(session, [row.id for row in left], at)
        balloons.delete(session, [row.id for row in left])
    return {*came, *(row.uuid for row in left)}


def _tell(row: models.Instance, values: inspection.Row) -> None:
    for name, value in values.items():
        setattr(row, name, value)


def _reservations(
    session: ty.Any,
    host: models.Host,
    rows: dict[str, models.Instance],
    reports: dict[str, inspection.Row],
    at: float,
) -> None:
    for instance_uuid, values in reports.items():
        if instance_uuid not in rows:
            # The report precedes the list, or follows the removal from it.
            # Only a list makes an instance present.
            rows[instance_uuid] = models.Instance(
                host_id=host.id,
                uuid=instance_uuid,
                name='',
                vcpus=values['vcpus'],
                present=False,
                arrived_at=at,
                left_at=at,
            )
            session.add(rows[instance_uuid])
    session.flush()
    if reports:
        reservations.put(
            session,
            {
                rows[instance_uuid].id: values
                for instance_uuid, values in reports.items()
            },
        )


def _balloons(
    session: ty.Any,
    host: models.Host,
    rows: dict[str, models.Instance],
    batch: inspection.Batch,
) -> None:
    # Reports on instances that have left are outdated.
    told = {
        rows[instance_uuid].id: values
        for instance_uuid, values in batch.balloons.items()
        if instance_uuid in rows and rows[instance_uuid].present
    }
    if batch.all_balloons:
        balloons.delete(
            session, [row.id for row in rows.values() if row.id not in told]
        )
    if told:
        balloons.put(session, told)
    full = {
        instance_uuid
        for instance_uuid, values in batch.balloons.items()
        if values['state'] == contract.BalloonState.FULL
    }
    if full:
        # As after a restore without an agent; the contents of this batch are
        # stored afterwards.
        balloon_changes.close(
            session,
            host.id,
            full,
            batch.at,
            contract.Outcome.UNDONE.value,
            'all vCPUs are back; nobody told why',
        )
