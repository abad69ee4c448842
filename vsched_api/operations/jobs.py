# SPDX-License-Identifier: Apache-2.0

"""Jobs of hosts: create, cancel, resume, and record their progress.

Agents pull jobs as they pull overrides. Each change gives the host a new
generation of its jobs, in one transaction. The agent receives the generation
by a cast or, if that is lost, in the reply to its next report, and then
fetches every job that is not finished.

Only the agent sets a job to a finished state. A cancelled job stays so in
``wanted`` until the agent has confirmed it. Reports on an attempt are ignored
once another attempt was ordered.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty
import uuid

from oslo_log import log as logging

from vsched_api.db import models
from vsched_api.db.queries import hosts
from vsched_api.db.queries import jobs as queries
from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import errors
from vsched_api.operations import markers
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

Code = contract_errors.Code

_ALL_PPM = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """A job; times in seconds since the epoch.

    :param wanted: a ``messages.JobWanted``.
    :param state: a ``messages.JobState``, as last reported by the agent.
    :param attempt: how often it was ordered to run.
    :param updated_at: when it was last ordered or reported on.
    :param started_at: when the agent first reported that the attempt runs.
    :param progress_from_at: when the current run first reported progress, and
        how much; None before.
    """

    uuid: str
    host: str
    kind: str
    wanted: str
    state: str
    attempt: int
    parameters: Mapping[str, ty.Any]
    progress_ppm: int
    detail: str
    created_at: float
    updated_at: float
    started_at: float | None = None
    progress_from_at: float | None = None
    progress_from_ppm: int | None = None

    def eta_s(self, now: float) -> float | None:
        """Return the estimated time until it is done, in seconds.

        The rest is expected to progress as fast as what was reported since
        the run's first progress, and from its last report on.

        :returns: None unless it runs and has progressed.
        """
        if (
            self.state != messages.JobState.RUNNING
            or self.progress_from_at is None
            or self.progress_from_ppm is None
        ):
            return None
        done_ppm = self.progress_ppm - self.progress_from_ppm
        took_s = self.updated_at - self.progress_from_at
        if done_ppm <= 0 or took_s <= 0:
            return None
        left_s = took_s * (_ALL_PPM - self.progress_ppm) / done_ppm
        return max(0.0, left_s - max(0.0, now - self.updated_at))


def page(
    database: db.Database,
    limit: int,
    marker: str | None = None,
    **filters: ty.Any,
) -> list[Job]:
    """Return jobs, newest first.

    :param marker: UUID of the last job of the previous page.
    :param filters: as for :func:`vsched_api.db.queries.jobs.page`.
    :raises errors.Invalid: when the marker is not a stored job.
    """

    def work(session: ty.Any) -> list[Job]:
        after = markers.position(
            marker,
            lambda uuid: queries.position(session, uuid),
            'no job has it',
        )
        return [
            _job(found)
            for found in queries.page(session, limit, after, **filters)
        ]

    return database.read(work)


def get(database: db.Database, job_uuid: str) -> Job:
    """Return one job.

    :raises errors.NotFound: when there is none with this UUID.
    """
    return database.read(lambda session: _job(_known(session, job_uuid)))


def create(
    database: db.Database,
    announcer: announcements.Announcer,
    host: str,
    kind: messages.JobKind,
    parameters: Mapping[str, ty.Any],
    now: float,
) -> Job:
    """Create a job.

    :param parameters: of the kind, already validated.
    :raises errors.NotFound: when no agent ever reported from the host.
    :raises errors.Conflict: when it has an unfinished job of this kind.
    """
    job_uuid = str(uuid.uuid4())

    def work(session: ty.Any) -> tuple[Job, int]:
        row = hosts.next_jobs_generation(session, host)
        if row is None:
            raise errors.NotFound(
                'no agent reported from a host named %s' % host,
                Code.HOST_NOT_FOUND,
            )
        _alone(session, row, kind)
        queries.add(
            session, row.id, job_uuid, kind.value, dict(parameters), now
        )
        return _job(_known(session, job_uuid)), row.jobs_generation

    job, generation = database.write(work)
    LOG.info('Host %s: %s is ordered as job %s', host, job.kind, job.uuid)
    announcer.jobs_changed(host, generation)
    return job


def cancel(
    database: db.Database,
    announcer: announcements.Announcer,
    job_uuid: str,
    now: float,
) -> Job:
    """Cancel a job; the agent confirms it.

    A repeated request notifies the agent again.

    :raises errors.NotFound: when there is no such job.
    :raises errors.Conflict: when it is finished.
    """

    def change(session: ty.Any, host: models.Host, job: models.Job) -> None:
        if job.state in queries.FINISHED:
            raise errors.Conflict(
                'job %s is %s already' % (job_uuid, job.state),
                Code.JOB_FINISHED,
            )
        if job.wanted != messages.JobWanted.CANCEL:
            job.wanted = messages.JobWanted.CANCEL.value
            job.updated_at = now

    return _change(database, announcer, job_uuid, change)


def resume(
    database: db.Database,
    announcer: announcements.Announcer,
    job_uuid: str,
    now: float,
) -> Job:
    """Resume a job that failed or was cancelled.

    A job that runs or is queued stays as it is.

    :raises errors.NotFound: when there is no such job.
    :raises errors.Conflict: when it is done, when the agent has not yet
        confirmed its cancellation, or when the host has another unfinished job
        of its kind.
    """

    def change(session: ty.Any, host: models.Host, job: models.Job) -> None:
        if job.state == messages.JobState.DONE:
            raise errors.Conflict(
                'job %s is done; order another one' % job_uuid,
                Code.JOB_FINISHED,
            )
        if job.state in queries.FINISHED:
            _alone(session, host, messages.JobKind(job.kind))
            job.attempt += 1
            job.wanted = messages.JobWanted.RUN.value
            job.state = messages.JobState.QUEUED.value
            job.detail = ''
            job.updated_at = now
            _forget_progress(job)
        elif job.wanted != messages.JobWanted.RUN:
            raise errors.Conflict(
                'the agent of host %s has not confirmed yet that job %s is '
                'cancelled: try again' % (host.name, job_uuid),
                Code.JOB_CHANGING,
            )

    return _change(database, announcer, job_uuid, change)


def orders(database: db.Database, host: str) -> messages.Jobs:
    """Return every unfinished job of a host, as a message to its agent.

    :returns: generation 0 and no jobs for an unknown host.
    """

    def work(session: ty.Any) -> messages.Jobs:
        row = hosts.by_name(session, host)
        if row is None:
            return messages.Jobs(generation=0)
        # The generation is read first: if a job is created between the two
        # reads, the agent gets it with an older number and fetches again.
        generation, host_id = row.jobs_generation, row.id
        return messages.Jobs(
            generation=generation,
            orders=tuple(
                messages.JobOrder(
                    uuid=job.uuid,
                    kind=messages.JobKind(job.kind),
                    wanted=messages.JobWanted(job.wanted),
                    attempt=job.attempt,
                    parameters=job.parameters,
                )
                for job in queries.unfinished(session, host_id)
            ),
        )

    return database.read(work)


def record(
    session: ty.Any,
    host_id: int,
    reports: Sequence[Mapping[str, ty.Any]],
    now: float,
) -> None:
    """Store an agent's reports on jobs, inside a transaction.

    Reports on an earlier attempt, on a finished one or on an unknown job are
    ignored. A report on a later attempt is stored: the attempt was ordered
    before the database was restored from a backup.

    :param reports: rows, in the order of the reports.
    """
    if not reports:
        return
    rows = queries.of_host(
        session, host_id, {report['uuid'] for report in reports}
    )
    for report in reports:
        row = rows.get(report['uuid'])
        if (
            row is None
            or report['attempt'] < row.attempt
            or (
                report['attempt'] == row.attempt
                and row.state in queries.FINISHED
            )
        ):
            LOG.info(
                'The report of host %d on attempt %d of job %s is ignored',
                host_id,
                report['attempt'],
                report['uuid'],
            )
            continue
        _measure_progress(row, report, now)
        for name in ('attempt', 'state', 'progress_ppm', 'detail'):
            setattr(row, name, report[name])
        row.updated_at = now
    session.flush()


def _measure_progress(
    row: models.Job, report: Mapping[str, ty.Any], now: float
) -> None:
    """Store when the attempt began, and the first progress of its run."""
    if report['attempt'] != row.attempt:
        _forget_progress(row)
    if report['state'] == messages.JobState.RUNNING and row.started_at is None:
        row.started_at = now
    done_ppm = report['progress_ppm']
    if not done_ppm:
        # The run has begun, perhaps again: what an interrupted one has done
        # is not done at once, and is no measure.
        row.progress_from_at = row.progress_from_ppm = None
    elif row.progress_from_ppm is None or done_ppm < row.progress_from_ppm:
        row.progress_from_at, row.progress_from_ppm = now, done_ppm


def _forget_progress(row: models.Job) -> None:
    row.started_at = row.progress_from_at = row.progress_from_ppm = None


def _change(
    database: db.Database,
    announcer: announcements.Announcer,
    job_uuid: str,
    change: Callable[[ty.Any, models.Host, models.Job], None],
) -> Job:
    # A job stays with its host, so that the host may be read before: the first
    # statement of the transaction must be the write to the host.
    host = get(database, job_uuid).host

    def work(session: ty.Any) -> tuple[Job, int]:
        row = hosts.next_jobs_generation(session, host)
        found = _known(session, job_uuid)
        if row is None:
            raise _none(job_uuid)
        change(session, row, found.job)
        session.flush()
        return _job(found), row.jobs_generation

    job, generation = database.write(work)
    LOG.info(
        'Host %s: job %s is wanted to %s, attempt %d',
        host,
        job_uuid,
        job.wanted,
        job.attempt,
    )
    announcer.jobs_changed(host, generation)
    return job


def _alone(session: ty.Any, host: models.Host, kind: messages.JobKind) -> None:
    others = queries.unfinished(session, host.id, kind.value)
    if others:
        raise errors.Conflict(
            'host %s has job %s of kind %s, which is %s; wait for it or '
            'cancel it' % (host.name, others[0].uuid, kind, others[0].state),
            Code.JOB_EXISTS,
        )


def _known(session: ty.Any, job_uuid: str) -> queries.Found:
    found = queries.by_uuid(session, job_uuid)
    if found is None:
        raise _none(job_uuid)
    return found


def _none(job_uuid: str) -> errors.NotFound:
    return errors.NotFound('there is no job %s' % job_uuid, Code.JOB_NOT_FOUND)


def _job(found: queries.Found) -> Job:
    row = found.job
    return Job(
        host=found.host,
        **{
            field.name: getattr(row, field.name)
            for field in dataclasses.fields(Job)
            if field.name != 'host'
        },
    )
