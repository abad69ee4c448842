# SPDX-License-Identifier: Apache-2.0

"""Gathers the agent's reports, events and samples into batches.

A reservation is reported once, and again when it changes. A batch stays in
the journal until the collector confirms it.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import time
import typing as ty

from vsched_agent.hypervisor import base
from vsched_agent.reporting import events
from vsched_agent.reporting import profile_reports
from vsched_agent.reporting import reservation_reports
from vsched_agent.reservations import desired as desires
from vsched_agent.state import store as journals
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Severity = messages.Severity

#: Most job reports that wait for a batch.
_MAX_JOBS = 1000
#: Most samples that wait for the next batch; the oldest are dropped.
_MAX_SAMPLES = 100_000

Balloon = balloons.BalloonReport | balloons.BalloonChange


class ReportBuilder:
    """Reports, events and samples on their way to the journal.

    Not thread-safe but for :meth:`resync`, :meth:`job`, :meth:`balloon` and
    ``events``: the reconciler's thread is its only caller.

    :param host: this host's name.
    :param journal: where the batches wait.
    :param outbox_batches: how many may wait.
    :param on_report: called with each report after it was stored, and the
        host's properties.
    :ivar events: the events that wait for a batch.
    :ivar reservations: the state of each instance's reservation.
    :ivar profiles: the host's profiles that wait for a batch.
    """

    def __init__(
        self,
        host: str,
        journal: journals.Journal,
        outbox_batches: int,
        on_report: Callable[
            [messages.Report, messages.HostInfo], None
        ] = lambda report, info: None,
    ) -> None:
        self._host = host
        self._on_report = on_report
        self._outbox = journal.outbox
        self._outbox_batches = outbox_batches
        self.events = events.Events()
        self.reservations = reservation_reports.ReservationReports(
            journal, self.events
        )
        self.profiles = profile_reports.ProfileReports(
            journal.outbox, self.events
        )
        self._usage: list[messages.UsageSample] = []
        self._host_usage: list[messages.HostUsage] = []
        # Filled by any thread; the others by the reconciler's thread only.
        self._jobs: collections.deque[messages.JobReport] = collections.deque(
            maxlen=_MAX_JOBS
        )
        self._balloons: collections.deque[Balloon] = collections.deque()
        # The last report by instance.
        self._reported_balloons: dict[str, balloons.BalloonReport] = {}
        self._full = True
        self._sent_info: messages.HostInfo | None = None
        self._sent_instances: tuple[messages.InstanceInfo, ...] | None = None

    def remember(self) -> None:
        """Restore the journal's lost records; make the next batch full."""
        self._full = True
        self.reservations.remember()

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""
        self._reported_balloons.pop(uuid, None)
        self.reservations.forget(uuid)

    @property
    def urgent(self) -> bool:
        """Return whether there is more to report than samples."""
        return bool(
            self.events
            or self.reservations
            or self._full
            or self._jobs
            or self.profiles
            or self._balloons
        )

    @property
    def eventful(self) -> bool:
        """Return whether there are events to report."""
        return bool(self.events or self._balloons)

    def resync(self) -> None:
        """Make the next batch a full report. Safe from any thread."""
        self._full = True

    def job(self, report: messages.JobReport) -> None:
        """Report a job's progress. Safe from any thread."""
        self._jobs.append(report)
        if report.state == messages.JobState.FAILED:
            self.events.add(
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
                    one.server.name,
                    one.server.project_id,
                    one.server.flavor_name,
                )
                for one in domains
            )
        )
        changed = (
            self.reservations.reported if full else self.reservations.changed
        )
        jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
        waiting = self.events.take()
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
        made: list[messages.Report] = []

        def make(batch: int) -> messages.Report:
            # Perhaps again, when the journal fails.
            made[:] = [
                self._batch(
                    batch,
                    info,
                    instances,
                    changed,
                    waiting,
                    jobs,
                    statuses,
                    queued,
                    full,
                )
            ]
            return made[0]

        try:
            self._outbox.post(
                make,
                checkpoint,
                self.profiles.newly_measured,
                self.reservations.changed.values(),
            )
        except BaseException:
            # Reported with the next batch.
            self.events.put_back(waiting)
            self._jobs.extendleft(reversed(jobs))
            self._balloons.extendleft(reversed(queued))
            self._full = self._full or full
            raise
        self.reservations.sent()
        self.profiles.sent()
        self._sent_info, self._sent_instances = info, instances
        self._usage, self._host_usage = [], []
        self._trim()
        self._on_report(made[0], info)

    def _batch(
        self,
        batch: int,
        info: messages.HostInfo,
        instances: tuple[messages.InstanceInfo, ...] | None,
        changed: Mapping[str, messages.ReservationReport],
        waiting: list[messages.Event],
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
            events=tuple(waiting),
            jobs=tuple(jobs),
            error_profiles=tuple(self.profiles.error_profiles),
            overhead_profiles=tuple(self.profiles.overhead_profiles),
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
            self.events.add(
                errors.Code.BANDWIDTH_LEAKED,
                Severity.WARNING,
                'the kernel counts %d mcpu as reserved that no thread has; '
                '"vsched-agent doctor" says how to recover them'
                % now.leaked_mcpu,
                figures={'leaked_mcpu': now.leaked_mcpu},
            )
        if before is None or before.capacity_mcpu == now.capacity_mcpu:
            return False
        self.events.add(
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
        dropped = self._outbox.trim(self._outbox_batches)
        if dropped:
            self._full = True
            samples = sum(len(report.usage) for report in dropped)
            self.events.add(
                errors.Code.REPORTS_DROPPED,
                Severity.WARNING,
                '%d batches with %d samples waited too long and were '
                'dropped' % (len(dropped), samples),
                figures={'batches': len(dropped), 'samples': samples},
            )
