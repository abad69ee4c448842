# SPDX-License-Identifier: Apache-2.0

"""Gathers the agent's reports, events and samples into batches.

A reservation is reported once, and again when it changes. A batch stays in
the journal until the collector confirms it.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import time
import typing as ty
import uuid as uuids

from oslo_log import log as logging

from vsched_agent.hypervisor import base
from vsched_agent.reservations import applied
from vsched_agent.reservations import desired as desires
from vsched_agent.reservations import io_charging
from vsched_agent.state import store as journals
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error_change

LOG = logging.getLogger(__name__)

Severity = messages.Severity
State = messages.State

_LEVEL = {
    State.APPLIED: Severity.INFO,
    State.RELEASED: Severity.INFO,
    State.DEGRADED: Severity.WARNING,
    State.REFUSED: Severity.ERROR,
}
_CODE = {
    State.APPLIED: errors.Code.RESERVATION_APPLIED,
    State.RELEASED: errors.Code.RESERVATION_RELEASED,
    State.DEGRADED: errors.Code.RESERVATION_DEGRADED,
}
#: Refusals that more capacity does not resolve.
_INVALID_REQUEST = frozenset(
    (
        errors.Code.EXTRA_SPECS_INVALID,
        errors.Code.EXTRA_SPECS_UNAVAILABLE,
        errors.Code.RESERVATION_INVALID,
    )
)
#: Most job reports that wait for a batch.
_MAX_JOBS = 1000
#: Codes whose detail is significant: it changes with the cause only.
_SIGNIFICANT_DETAIL = _INVALID_REQUEST | {errors.Code.NOT_CERTIFIED}


#: Most samples that wait for the next batch; the oldest are dropped.
_MAX_SAMPLES = 100_000

Balloon = balloons.BalloonReport | balloons.BalloonChange


class ReportBuilder:
    """Reports, events and samples on their way to the journal.

    Not thread-safe but for :meth:`resync`, :meth:`job`, :meth:`balloon` and
    :meth:`event`: the reconciler's thread is its only caller.

    :param host: this host's name.
    :param journal: where the batches wait.
    :param outbox_batches: how many may wait.
    """

    def __init__(
        self, host: str, journal: journals.Journal, outbox_batches: int
    ) -> None:
        self._host = host
        self._journal = journal
        self._outbox_batches = outbox_batches
        # The last report of each instance: a restarted agent does not
        # repeat its event, and knows its ``since``.
        self._reported = journal.reservations()
        self._usage: list[messages.UsageSample] = []
        self._host_usage: list[messages.HostUsage] = []
        self._changed: dict[str, messages.ReservationReport] = {}
        # Filled by any thread; the others by the reconciler's thread only.
        self._events: collections.deque[messages.Event] = collections.deque()
        self._jobs: collections.deque[messages.JobReport] = collections.deque(
            maxlen=_MAX_JOBS
        )
        self._balloons: collections.deque[Balloon] = collections.deque()
        # The last report by instance.
        self._reported_balloons: dict[str, balloons.BalloonReport] = {}
        self._profiles: list[contract.ErrorProfile] = []
        self._overheads: list[contract.OverheadProfile] = []
        # Version of the newest error profile that has an event, of all and
        # of those in the journal.
        self._measured = self._measured_before = journal.outbox.measured()
        self._full = True
        self._sent_info: messages.HostInfo | None = None
        self._sent_instances: tuple[messages.InstanceInfo, ...] | None = None

    # What was reported

    @property
    def reported_instances(self) -> Collection[str]:
        """Return the instances that have a report."""
        return self._reported.keys()

    def unmet(self) -> set[str]:
        """Return the instances that more capacity may help."""
        return {
            uuid
            for uuid, before in self._reported.items()
            if before.state in (State.REFUSED, State.DEGRADED)
            and before.code not in _INVALID_REQUEST
        }

    def remember(self) -> None:
        """Restore the journal's lost records; make the next batch full."""
        self._full = True
        self._journal.note_reservations(self._reported.values())

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""
        self._reported.pop(uuid, None)
        self._changed.pop(uuid, None)
        self._reported_balloons.pop(uuid, None)
        self._journal.note_reservations((), (uuid,))

    # What is new

    @property
    def urgent(self) -> bool:
        """Return whether there is more to report than samples."""
        return bool(
            self._events
            or self._changed
            or self._full
            or self._jobs
            or self._profiles
            or self._overheads
            or self._balloons
        )

    @property
    def eventful(self) -> bool:
        """Return whether there are events to report."""
        return bool(self._events or self._balloons)

    def resync(self) -> None:
        """Make the next batch a full report. Safe from any thread."""
        self._full = True

    def job(self, report: messages.JobReport) -> None:
        """Report a job's progress. Safe from any thread."""
        self._jobs.append(report)
        if report.state == messages.JobState.FAILED:
            self.event(
                errors.Code.JOB_FAILED,
                Severity.WARNING,
                'job %s failed at %g %%: %s'
                % (
                    report.uuid,
                    report.progress_ppm / 10_000,
                    report.detail or 'no cause given',
                ),
                figures={
                    'job': report.uuid,
                    'attempt': report.attempt,
                    'progress_ppm': report.progress_ppm,
                },
            )

    def balloon(self, report: Balloon) -> None:
        """Report a balloon's status or a change. Safe from any thread."""
        self._balloons.append(report)

    def profile(
        self,
        profile: contract.ErrorProfile,
        changes: ty.Sequence[error_change.Change],
    ) -> None:
        """Report a new error profile of the host.

        :param changes: since the profile before.
        """
        self._profiles.append(profile)
        if not changes:
            return
        worst = changes[0]
        self.event(
            errors.Code.PROFILE_DRIFTED,
            messages.Severity.WARNING
            if worst.after_ppm > worst.before_ppm
            else messages.Severity.INFO,
            'errors of backend %s at %g %% every %d us have changed: p95 '
            '%.2f %%, before %.2f %%; %d points differ from the last %s '
            'profile'
            % (
                worst.backend,
                worst.share_ppm / 10_000,
                worst.period_us,
                worst.after_ppm / 10_000,
                worst.before_ppm / 10_000,
                len(changes),
                profile.source,
            ),
            figures={
                'version': profile.version,
                'source': str(profile.source),
                'points': len(changes),
                'before_ppm': worst.before_ppm,
                'after_ppm': worst.after_ppm,
            },
        )

    @property
    def measured_version(self) -> int | None:
        """Return the version of the newest error profile with an event.

        An earlier agent's event counts. None when there was none.
        """
        return self._measured

    def measured(self, profile: contract.ErrorProfile) -> None:
        """Report a finished run of the error benchmark.

        The journal keeps the version with the batch that has the event, so
        that there is one event for each run.
        """
        self.event(
            errors.Code.PROFILE_MEASURED,
            Severity.INFO,
            'error profile %d was measured: %d points%s'
            % (
                profile.version,
                len(profile.points),
                '' if profile.complete else '; some are missing',
            ),
            figures={
                'version': profile.version,
                'points': len(profile.points),
                'complete': profile.complete,
                'quick': profile.quick,
                'finished_at': profile.finished_at,
            },
        )
        self._measured = profile.version

    def overhead(self, profile: contract.OverheadProfile) -> None:
        """Report a new overhead profile of the host."""
        self._overheads.append(profile)
        if not profile.good:
            self.event(
                errors.Code.PROFILE_POOR,
                messages.Severity.WARNING,
                'overhead profile %d of source %s explains only %.0f %% of '
                'what was seen; its prices are not used'
                % (profile.version, profile.source, 100 * profile.r2),
                figures={
                    'version': profile.version,
                    'source': str(profile.source),
                    'r2': profile.r2,
                },
            )

    def add_usage(
        self,
        samples: ty.Iterable[messages.UsageSample],
        host: messages.HostUsage | None = None,
    ) -> None:
        """Report the CPU time that instances and the host have used."""
        self._usage.extend(samples)
        if host is not None:
            self._host_usage.append(host)
        # They accumulate only while no batch can be made.
        del self._usage[:-_MAX_SAMPLES], self._host_usage[:-_MAX_SAMPLES]

    def event(
        self,
        code: str,
        severity: Severity,
        detail: str,
        instance_uuid: str | None = None,
        figures: dict[str, ty.Any] | None = None,
    ) -> None:
        """Log and report an event. Safe from any thread.

        :param code: an :class:`errors.Code`.
        :param detail: one sentence with the figures.
        """
        LOG.log(
            {
                Severity.INFO: logging.INFO,
                Severity.WARNING: logging.WARNING,
            }.get(severity, logging.ERROR),
            '%s: %s',
            code,
            detail,
        )
        self._events.append(
            messages.Event(
                str(uuids.uuid4()),
                time.time(),
                str(code),
                severity,
                detail,
                instance_uuid,
                figures or {},
            )
        )

    def reservation(
        self,
        domain: base.Domain,
        desired: desires.Desired,
        held: applied.Holding | None,
        state: State,
        cause: errors.VschedError | None,
    ) -> None:
        """Report the state of an instance's reservation, if it has changed.

        :param held: what is in force.
        :param cause: why it differs from the desired one, if it does.
        """
        report = _report(domain, desired, held, state, cause)
        before = self._reported.get(domain.uuid)
        if before is not None and before.io is not None:
            if desired.io_charging is desires.NOTHING.io_charging:
                before = self._update_io(before, None)
            report = dataclasses.replace(report, io=before.io)
        if before is not None and _significant_fields(
            before
        ) == _significant_fields(report):
            return
        if before is not None and before.state == state:
            report = dataclasses.replace(report, since=before.since)
        self._reported[domain.uuid] = report
        self._changed[domain.uuid] = report
        if state in _LEVEL:
            figures = dict(report.figures)
            if state is State.DEGRADED and report.code is not None:
                figures['cause'] = str(report.code)
            if desired.request_id is not None:
                figures['request_id'] = desired.request_id
            self.event(
                _CODE[State.DEGRADED]
                if state is State.DEGRADED
                else report.code or _CODE[state],
                _LEVEL[state],
                _sentence(domain, report),
                domain.uuid,
                figures,
            )

    def io(self, domain: base.Domain, change: io_charging.IoChange) -> None:
        """Report the state of an instance's I/O threads."""
        before = self._reported.get(domain.uuid)
        if before is not None and before.io != change.io:
            self._update_io(before, change.io)
        if not change.eventful:
            return
        if change.refusal is not None:
            self.event(
                errors.Code.IO_REFUSED,
                Severity.WARNING,
                '%s: its I/O threads lack their reservations: %s'
                % (domain.name, change.refusal.detail),
                domain.uuid,
                {**change.refusal.figures, 'cause': str(change.refusal.code)},
            )
        else:
            self.event(
                errors.Code.IO_HELD,
                Severity.INFO,
                '%s: its I/O threads have their reservations again'
                % domain.name,
                domain.uuid,
            )

    def _update_io(
        self, before: messages.ReservationReport, io: messages.IoReport | None
    ) -> messages.ReservationReport:
        before = dataclasses.replace(before, io=io)
        self._reported[before.instance_uuid] = before
        self._changed[before.instance_uuid] = before
        return before

    # The batch

    def post(
        self,
        info: messages.HostInfo,
        domains: Collection[base.Domain] | None,
        checkpoint: Mapping[str, ty.Any] | None = None,
    ) -> None:
        """Number a batch of all that is new, and store it in the journal.

        :param info: the host's present properties and capacity.
        :param domains: every running instance; None while they are not
            known, which delays a full report.
        :param checkpoint: the counters after the samples of this batch,
            where the next agent continues.
        """
        full = self._full and domains is not None
        if full:
            self._full = False
        instances = (
            self._sent_instances
            if domains is None
            else tuple(
                messages.InstanceInfo(
                    one.uuid,
                    one.name,
                    len(one.vcpus),
                    desires.workload_class(one),
                )
                for one in domains
            )
        )
        changed = self._reported if full else self._changed
        jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
        events = [self._events.popleft() for _ in range(len(self._events))]
        queued = [self._balloons.popleft() for _ in range(len(self._balloons))]
        statuses = {
            one.instance_uuid: one
            for one in queued
            if isinstance(one, balloons.BalloonReport)
        }
        self._reported_balloons |= statuses
        if full and domains is not None:
            statuses = {
                one.uuid: self._reported_balloons[one.uuid]
                for one in domains
                if one.uuid in self._reported_balloons
            }
        try:
            self._journal.note_reservations(self._changed.values())
            self._journal.outbox.post(
                lambda batch: self._batch(
                    batch,
                    info,
                    instances,
                    changed,
                    events,
                    jobs,
                    statuses,
                    queued,
                    full,
                ),
                checkpoint,
                None
                if self._measured == self._measured_before
                else self._measured,
            )
        except BaseException:
            # Reported with the next batch.
            self._events.extendleft(reversed(events))
            self._jobs.extendleft(reversed(jobs))
            self._balloons.extendleft(reversed(queued))
            self._full = self._full or full
            raise
        self._measured_before = self._measured
        self._sent_info, self._sent_instances = info, instances
        self._usage, self._changed = [], {}
        self._profiles, self._overheads, self._host_usage = [], [], []
        self._trim()

    def _batch(
        self,
        batch: int,
        info: messages.HostInfo,
        instances: tuple[messages.InstanceInfo, ...] | None,
        changed: dict[str, messages.ReservationReport],
        events: list[messages.Event],
        jobs: list[messages.JobReport],
        statuses: dict[str, balloons.BalloonReport],
        queued: list[Balloon],
        full: bool,
    ) -> messages.Report:
        return messages.Report(
            host=self._host,
            batch=batch,
            at=time.time(),
            host_info=info if full or info != self._sent_info else None,
            instances=instances
            if full or instances != self._sent_instances
            else None,
            reservations=tuple(changed.values()),
            usage=tuple(self._usage),
            events=tuple(events),
            jobs=tuple(jobs),
            error_profiles=tuple(self._profiles),
            overhead_profiles=tuple(self._overheads),
            host_usage=tuple(self._host_usage),
            balloons=tuple(statuses.values()),
            all_balloons=full,
            balloon_changes=tuple(
                balloons.whole(
                    one
                    for one in queued
                    if isinstance(one, balloons.BalloonChange)
                )
            ),
        )

    def compare(self, now: messages.HostInfo) -> bool:
        """Report what has changed of the host since the last batch.

        :returns: whether its capacity has changed.
        """
        before = self._sent_info
        if now.leaked_mcpu > (before.leaked_mcpu if before else 0):
            self.event(
                errors.Code.BANDWIDTH_LEAKED,
                Severity.WARNING,
                'the kernel counts %d mcpu as reserved that no thread has; '
                '"vsched-agent doctor" says how to recover them'
                % now.leaked_mcpu,
                figures={'leaked_mcpu': now.leaked_mcpu},
            )
        if before is None or before.capacity_mcpu == now.capacity_mcpu:
            return False
        self.event(
            errors.Code.CAPACITY_CHANGED,
            Severity.WARNING
            if now.capacity_mcpu < before.capacity_mcpu
            else Severity.INFO,
            'the capacity is %d mcpu on %d CPUs, before it was %d on %d'
            % (now.capacity_mcpu, now.cpus, before.capacity_mcpu, before.cpus),
            figures={
                'capacity_mcpu': now.capacity_mcpu,
                'before_mcpu': before.capacity_mcpu,
            },
        )
        return True

    def _trim(self) -> None:
        dropped = self._journal.outbox.trim(self._outbox_batches)
        if dropped:
            self._full = True
            samples = sum(len(report.usage) for report in dropped)
            self.event(
                errors.Code.REPORTS_DROPPED,
                Severity.WARNING,
                '%d batches with %d samples waited too long and were '
                'dropped' % (len(dropped), samples),
                figures={'batches': len(dropped), 'samples': samples},
            )


def _report(
    domain: base.Domain,
    desired: desires.Desired,
    held: applied.Holding | None,
    state: State,
    cause: errors.VschedError | None,
) -> messages.ReservationReport:
    now = time.time()
    reserved, enforced = desired.reserved, held.reserved if held else None
    return messages.ReservationReport(
        instance_uuid=domain.uuid,
        source=desired.source,
        state=state,
        vcpus=len(domain.vcpus),
        since=now,
        generation=desired.generation,
        runtime_us=reserved.runtime_us if reserved else None,
        period_us=reserved.period_us if reserved else None,
        mode=str(reserved.mode) if reserved else None,
        backend=reserved.backend if reserved else None,
        enforced_backend=held.backend if held else None,
        enforced_runtime_us=enforced.runtime_us if enforced else None,
        enforced_period_us=enforced.period_us if enforced else None,
        attested_at=now if held else None,
        code=str(cause.code) if cause else None,
        detail=cause.detail if cause else None,
        figures=getattr(cause, 'figures', {}),
    )


def _significant_fields(
    report: messages.ReservationReport,
) -> tuple[ty.Any, ...]:
    # The figures of a refusal change with every neighbour and are left out.
    # The detail of an invalid request changes with the request only.
    return (
        report.source,
        report.generation,
        report.runtime_us,
        report.period_us,
        report.mode,
        report.backend,
        report.vcpus,
        report.enforced_backend,
        report.enforced_runtime_us,
        report.enforced_period_us,
        report.state,
        report.code,
        report.detail if report.code in _SIGNIFICANT_DETAIL else None,
    )


def _sentence(domain: base.Domain, report: messages.ReservationReport) -> str:
    if report.state == State.RELEASED:
        return '%s: its reservation is released' % domain.name
    if report.state == State.APPLIED:
        return '%s: %d vCPUs hold %d us every %d us by %s' % (
            domain.name,
            report.vcpus,
            report.enforced_runtime_us or 0,
            report.enforced_period_us or 0,
            report.enforced_backend,
        )
    keeps = (
        'it keeps what it had'
        if report.state == State.REFUSED
        else ('held by %s instead' % report.enforced_backend)
    )
    return '%s: %s (%s)' % (domain.name, report.detail, keeps)
