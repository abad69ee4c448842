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

"""Store what agents report, each batch exactly once.

A batch is one transaction. The host's row is taken first, so that of two
collectors that got the same batch one waits and then sees that it is stored.

**An instance that moves.** Each host's list is kept apart. While an instance
migrates both hosts list it; it counts as being on the one that began to list
it last, and if that one drops it, as when the migration fails, on the other.
So neither the order in which two agents report nor a repeated list matters.
When a host drops an instance, its reservation there is released. An override
belongs to the instance: it stays, holds on every host that lists the
instance, and each such arrival and departure gives the host's overrides a
new generation, so that its agent asks for them.

**A batch that can not be stored.** An agent sends a batch until it is
answered. One that can never be stored would hold up all that follow, so it
is answered as if it had been, an event says what was lost, and the agent is
asked for a full report. A database that is away is another matter: then
nothing is answered, and the agent keeps the batch.
"""

from collections.abc import Collection
import typing as ty
import uuid

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
from vsched_api.operations import gathering
from vsched_api.operations import inspection
from vsched_api.operations import jobs
from vsched_api.operations import snapshot
from vsched_api.operations import storable
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)

# Makes the events of the collector itself recognisable as repeats.
_EVENTS = uuid.UUID('8c7b4a52-3a0e-4be3-9c6b-0f9a4f0f6a11')
_SECONDS_PER_DAY = 86_400

#: What schedulers are told of errors holds with, unless it is set.
CONFIDENCE = 0.8


def store(database: db.Database, report: messages.Report, now: float,
          together: gathering.Gathering | None = None,
          confidence: float = CONFIDENCE) -> messages.ReportReply:
    """Store a batch, unless it is stored already.

    :param now: the collector's clock, in seconds since the epoch.
    :param together: where batches that carry samples only are stored with
        others; without it each is stored by itself.
    :param confidence: that what schedulers are told of errors holds with.
    :raises vsched_api.db.errors.DatabaseUnavailable: when it is not known
        to be stored.
    """
    try:
        batch = inspection.rows(report)
        if together is not None and batch.plain:
            reply = together.store(batch, now)
            if reply is not None:
                return reply
        return database.write(lambda session: _store(
            session, batch, now, confidence))
    except (wire.MalformedMessage,
            db_errors.UnstorableValue) as problem:
        return reject(database, report.to_dict(), problem, now)


def reject(database: db.Database, raw: object, problem: Exception,
           now: float) -> messages.ReportReply:
    """Answer a batch that can never be stored, and say so in an event.

    :param raw: the report as it came.
    :raises wire.MalformedMessage: when it does not even tell whose
        batch it is; that is nothing to answer.
    :raises vsched_api.db.errors.DatabaseUnavailable: when the event is not
        known to be stored.
    """
    host, number = _whose(raw, problem)
    detail = storable.sentence(
        'Batch %d was not stored: %s' % (number, problem))
    LOG.error('Host %s: %s', host, detail)
    # One event a day for each problem: a full report may well carry it
    # again, and again.
    event = {
        'uuid': str(uuid.uuid5(_EVENTS, ascii('%s %s %d' % (
            host, problem, now // _SECONDS_PER_DAY)))),
        'at': now, 'code': errors.Code.REPORT_REJECTED.value,
        'severity': messages.Severity.ERROR.value, 'detail': detail,
        'instance_uuid': None, 'figures': {'batch': number}}

    def work(session: ty.Any) -> messages.ReportReply:
        row = hosts.lock(session, host) or hosts.add(session, host)
        duplicate = number <= row.last_batch
        if not duplicate:
            row.last_batch = number
            row.received_at = now
            events.add(session, [{'host_id': row.id, **event}])
        return messages.ReportReply(
            duplicate=duplicate, resync=not duplicate,
            overrides_generation=row.overrides_generation,
            jobs_generation=row.jobs_generation)

    return database.write(work)


def _whose(raw: object, problem: Exception) -> tuple[str, int]:
    if isinstance(raw, dict):
        host, number = raw.get('host'), raw.get('batch')
        if (isinstance(host, str) and isinstance(number, int) and
                not isinstance(number, bool) and 0 <= number < 2**63):
            return storable.host_name(host), number
    raise wire.MalformedMessage(str(problem))


def _store(session: ty.Any, batch: inspection.Batch, now: float,
           confidence: float) -> messages.ReportReply:
    generation = 0
    if batch.instances is not None:
        generation = counters.next_override_generation(session)
    version = None
    if (batch.info is not None or batch.profiles or
            batch.overhead_profiles):
        version = counters.next_snapshot_versions(session, now)
    host = hosts.lock(session, batch.host) or hosts.add(session, batch.host)
    if batch.number <= host.last_batch:
        return messages.ReportReply(
            duplicate=True, overrides_generation=host.overrides_generation,
            jobs_generation=host.jobs_generation)
    missed = batch.number != host.last_batch + 1
    host.last_batch = batch.number
    host.reported_at = batch.at
    host.received_at = now
    if batch.info is not None:
        host.info = batch.info
    # Most batches carry samples and no more: they need no look at these.
    rows = instances.of_host(session, host.id) if (
        batch.instances is not None or batch.reservations or
        batch.balloons or batch.all_balloons) else {}
    if batch.instances is not None:
        host.listed_at = now
        # An agent's clock that is ahead must not keep its host in front.
        moved = _list(session, host, rows, batch.instances,
                      min(batch.at, now))
        if overrides.exist(session, moved) or (
                balloons.orders_exist(session, moved)):
            host.overrides_generation = generation
    _reservations(session, host, rows, batch.reservations,
                  min(batch.at, now))
    _balloons(session, host, rows, batch)
    balloon_changes.put(session, host.id, batch.balloon_changes, now)
    usage.add(session, {(host.id, batch.number): batch.usage})
    host_time.add(session, {(host.id, batch.number): batch.host_time})
    events.add(session, [
        {'host_id': host.id, **event} for event in batch.events])
    jobs.record(session, host.id, batch.jobs, now)
    profiles.add(
        session, models.ErrorProfile, host.id, batch.profiles)
    profiles.add(
        session, models.OverheadProfile, host.id, batch.overhead_profiles)
    if version is not None:
        snapshot.update(session, host, version, confidence,
                        measured=bool(batch.profiles or
                                      batch.overhead_profiles))
    full = batch.info is not None and batch.instances is not None
    return messages.ReportReply(
        duplicate=False, overrides_generation=host.overrides_generation,
        jobs_generation=host.jobs_generation,
        resync=not full and (
            missed or host.info is None or host.listed_at is None))


def _list(session: ty.Any, host: models.Host,
          rows: dict[str, models.Instance],
          listed: dict[str, inspection.Row], at: float) -> Collection[str]:
    """Make a host's rows say what its list says.

    :param rows: what the host listed before; new ones are added.
    :returns: the instances that came or left.
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
            # What it was told on its last stay is no news of this one.
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
    for name in ('name', 'vcpus', 'workload_class'):
        setattr(row, name, values[name])


def _reservations(session: ty.Any, host: models.Host,
                  rows: dict[str, models.Instance],
                  reports: dict[str, inspection.Row], at: float) -> None:
    for instance_uuid, values in reports.items():
        if instance_uuid not in rows:
            # Told of before it was listed, or after. Only a list says that
            # an instance is there.
            rows[instance_uuid] = models.Instance(
                host_id=host.id, uuid=instance_uuid, name='',
                vcpus=values['vcpus'], present=False, arrived_at=at,
                left_at=at)
            session.add(rows[instance_uuid])
    session.flush()
    if reports:
        reservations.put(session, {
            rows[instance_uuid].id: values
            for instance_uuid, values in reports.items()})


def _balloons(session: ty.Any, host: models.Host,
              rows: dict[str, models.Instance],
              batch: inspection.Batch) -> None:
    # What is told of one that has left says nothing any more.
    told = {rows[instance_uuid].id: values
            for instance_uuid, values in batch.balloons.items()
            if instance_uuid in rows and rows[instance_uuid].present}
    if batch.all_balloons:
        balloons.delete(session, [
            row.id for row in rows.values() if row.id not in told])
    if told:
        balloons.put(session, told)
    full = {instance_uuid for instance_uuid, values in batch.balloons.items()
            if values['state'] == contract.BalloonState.FULL}
    if full:
        # As after a restore without an agent; what this batch tells of them
        # is stored afterwards.
        balloon_changes.close(
            session, host.id, full, batch.at, contract.Outcome.UNDONE.value,
            'all vCPUs are back; nobody told why')
