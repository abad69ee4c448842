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

"""What the agent has to say, gathered until the next batch.

Each reservation's report is said once and again when it changed; what is
sent waits in the journal until the collector has it.
"""

import collections
from collections.abc import Collection
import dataclasses
import time
import typing as ty
import uuid as uuids

from oslo_log import log as logging

from vsched_agent import charging
from vsched_agent.hypervisor import base
from vsched_agent import in_force
from vsched_agent import journal as journals
from vsched_agent import wanted as wants
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
}
#: What no room on the host would mend.
_ABOUT_THE_TEXT = frozenset((
    errors.Code.EXTRA_SPECS_INVALID, errors.Code.RESERVATION_INVALID))
#: Reports of jobs that wait for a batch at most.
_MOST_JOBS = 1000
#: Causes whose words change only when there is something new to tell.
_TOLD_ANEW = _ABOUT_THE_TEXT | {errors.Code.NOT_CERTIFIED}


Balloon = balloons.BalloonReport | balloons.BalloonChange


class Bulletin:
    """Reports, events and samples on their way to the journal.

    Not thread-safe but for :meth:`resync`, :meth:`job`, :meth:`balloon` and
    :meth:`event`: the reconciler's thread is its only caller.

    :param host: this host's name.
    :param journal: where the batches wait.
    :param outbox_batches: how many may wait.
    """

    def __init__(self, host: str, journal: journals.Journal,
                 outbox_batches: int) -> None:
        self._host = host
        self._journal = journal
        self._outbox_batches = outbox_batches
        # What was last said of each instance, so that a restarted agent
        # neither repeats its events nor forgets since when.
        self._said = journal.reservations()
        self._usage: list[messages.UsageSample] = []
        self._host_usage: list[messages.HostUsage] = []
        self._changed: dict[str, messages.ReservationReport] = {}
        # From any thread; the others are the reconciler's own.
        self._events: collections.deque[messages.Event] = (
            collections.deque())
        self._jobs: collections.deque[messages.JobReport] = (
            collections.deque(maxlen=_MOST_JOBS))
        self._balloons: collections.deque[Balloon] = collections.deque()
        # By instance, what was last said.
        self._balloons_said: dict[str, balloons.BalloonReport] = {}
        self._profiles: list[contract.ErrorProfile] = []
        self._overheads: list[contract.OverheadProfile] = []
        self._full = True
        self._sent_info: messages.HostInfo | None = None
        self._sent_instances: tuple[messages.InstanceInfo, ...] | None = None

    # What was said

    @property
    def spoken_of(self) -> Collection[str]:
        """The instances of which something was said."""
        return self._said.keys()

    def unmet(self) -> set[str]:
        """The instances that more room on the host could help."""
        return {uuid for uuid, said in self._said.items()
                if said.state in (State.REFUSED, State.DEGRADED) and
                said.code not in _ABOUT_THE_TEXT}

    def forget(self, uuid: str) -> None:
        """The instance is gone."""
        self._said.pop(uuid, None)
        self._changed.pop(uuid, None)
        self._balloons_said.pop(uuid, None)
        self._journal.note_reservations((), (uuid,))

    # What is new

    @property
    def urgent(self) -> bool:
        """Whether there is more to tell than samples."""
        return bool(self._events or self._changed or self._full or
                    self._jobs or self._profiles or self._overheads or
                    self._balloons)

    @property
    def eventful(self) -> bool:
        """Whether there are events to tell."""
        return bool(self._events or self._balloons)

    def resync(self) -> None:
        """The next batch should tell everything. Safe from any thread."""
        self._full = True

    def job(self, report: messages.JobReport) -> None:
        """A job got further. Safe from any thread."""
        self._jobs.append(report)

    def balloon(self, told: Balloon) -> None:
        """How an instance stands, or what was done to it.

        Safe from any thread.
        """
        self._balloons.append(told)

    def profile(self, profile: contract.ErrorProfile,
                changes: ty.Sequence[error_change.Change]) -> None:
        """The host has a new error profile.

        :param changes: since the profile before.
        """
        self._profiles.append(profile)
        if not changes:
            return
        worst = changes[0]
        self.event(
            errors.Code.PROFILE_DRIFTED, messages.Severity.WARNING
            if worst.after_ppm > worst.before_ppm
            else messages.Severity.INFO,
            'errors of backend %s at %g %% every %d us have changed: p95 '
            '%.2f %%, before %.2f %%; %d points differ from the last %s '
            'profile' % (
                worst.backend, worst.share_ppm / 10_000, worst.period_us,
                worst.after_ppm / 10_000, worst.before_ppm / 10_000,
                len(changes), profile.source),
            figures={'version': profile.version,
                     'source': str(profile.source),
                     'points': len(changes),
                     'before_ppm': worst.before_ppm,
                     'after_ppm': worst.after_ppm})

    def overhead(self, profile: contract.OverheadProfile) -> None:
        """The host has a new overhead profile."""
        self._overheads.append(profile)
        if not profile.good:
            self.event(
                errors.Code.PROFILE_POOR, messages.Severity.WARNING,
                'overhead profile %d of source %s explains only %.0f %% of '
                'what was seen; its prices are not used' % (
                    profile.version, profile.source, 100 * profile.r2),
                figures={'version': profile.version,
                         'source': str(profile.source), 'r2': profile.r2})

    def used(self, samples: ty.Iterable[messages.UsageSample],
             host: messages.HostUsage | None = None) -> None:
        """Instances and their host have used CPU time."""
        self._usage.extend(samples)
        if host is not None:
            self._host_usage.append(host)

    def event(self, code: str, severity: Severity, detail: str,
              instance_uuid: str | None = None,
              figures: dict[str, ty.Any] | None = None) -> None:
        """Something happened that an operator may want to know.

        Safe from any thread.

        :param code: an :class:`errors.Code`.
        :param detail: one sentence with the figures.
        """
        LOG.log({Severity.INFO: logging.INFO,
                 Severity.WARNING: logging.WARNING}.get(
                     severity, logging.ERROR), '%s: %s', code, detail)
        self._events.append(messages.Event(
            str(uuids.uuid4()), time.time(), str(code), severity, detail,
            instance_uuid, figures or {}))

    def reservation(self, domain: base.Domain, wanted: wants.Wanted,
                    held: in_force.Holding | None, state: State,
                    cause: errors.VschedError | None) -> None:
        """This is how an instance's reservation stands; news or not.

        :param held: what is in force.
        :param cause: why it is not held as wanted, if so.
        """
        report = _report(domain, wanted, held, state, cause)
        said = self._said.get(domain.uuid)
        if said is not None and said.io is not None:
            if wanted.io_charging is wants.NOTHING.io_charging:
                said = self._say_io(said, None)
            report = dataclasses.replace(report, io=said.io)
        if said is not None and _gist(said) == _gist(report):
            return
        if said is not None and said.state == state:
            report = dataclasses.replace(report, since=said.since)
        self._said[domain.uuid] = report
        self._changed[domain.uuid] = report
        if state in _LEVEL:
            self.event(
                report.code or _CODE[state], _LEVEL[state],
                _sentence(domain, report), domain.uuid, report.figures)

    def io(self, domain: base.Domain, news: charging.News) -> None:
        """This is how the threads that serve an instance's I/O stand."""
        said = self._said.get(domain.uuid)
        if said is not None and said.io != news.io:
            self._say_io(said, news.io)
        if not news.eventful:
            return
        if news.refusal is not None:
            self.event(
                errors.Code.IO_REFUSED, Severity.WARNING,
                '%s: its I/O threads are not held as they should be: %s' % (
                    domain.name, news.refusal.detail),
                domain.uuid, {**news.refusal.figures,
                              'cause': str(news.refusal.code)})
        else:
            self.event(
                errors.Code.IO_HELD, Severity.INFO,
                '%s: its I/O threads are held as they should be again'
                % domain.name, domain.uuid)

    def _say_io(self, said: messages.ReservationReport,
                io: messages.IoReport | None) -> messages.ReservationReport:
        said = dataclasses.replace(said, io=io)
        self._said[said.instance_uuid] = said
        self._changed[said.instance_uuid] = said
        return said

    # The batch

    def post(self, info: messages.HostInfo,
             domains: Collection[base.Domain] | None) -> None:
        """Number a batch of all that is new, and have the journal keep it.

        :param info: what the host is and can promise, now.
        :param domains: every running instance; None while nobody knows.
            What a full report tells of them waits until somebody does.
        """
        full = self._full and domains is not None
        if full:
            self._full = False
        instances = self._sent_instances if domains is None else tuple(
            messages.InstanceInfo(one.uuid, one.name, len(one.vcpus),
                                  wants.workload_class(one))
            for one in domains)
        changed = self._said if full else self._changed
        jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
        events = [self._events.popleft() for _ in range(len(self._events))]
        told = [self._balloons.popleft()
                for _ in range(len(self._balloons))]
        stand = {one.instance_uuid: one for one in told
                 if isinstance(one, balloons.BalloonReport)}
        self._balloons_said |= stand
        if full and domains is not None:
            stand = {one.uuid: self._balloons_said[one.uuid]
                     for one in domains if one.uuid in self._balloons_said}
        self._journal.note_reservations(self._changed.values())
        self._journal.post(lambda batch: messages.Report(
            host=self._host, batch=batch, at=time.time(),
            host_info=info if full or info != self._sent_info else None,
            instances=instances
            if full or instances != self._sent_instances else None,
            reservations=tuple(changed.values()),
            usage=tuple(self._usage), events=tuple(events),
            jobs=tuple(jobs), error_profiles=tuple(self._profiles),
            overhead_profiles=tuple(self._overheads),
            host_usage=tuple(self._host_usage),
            balloons=tuple(stand.values()), all_balloons=full,
            balloon_changes=tuple(balloons.whole(
                one for one in told
                if isinstance(one, balloons.BalloonChange)))))
        self._sent_info, self._sent_instances = info, instances
        self._usage, self._changed = [], {}
        self._profiles, self._overheads, self._host_usage = [], [], []
        self._trim()

    def compare(self, now: messages.HostInfo) -> bool:
        """Tell what has become of the host since the last batch.

        :returns: whether it can promise more or less than before.
        """
        before = self._sent_info
        if now.leaked_mcpu > (before.leaked_mcpu if before else 0):
            self.event(
                errors.Code.BANDWIDTH_LEAKED, Severity.WARNING,
                'the kernel counts %d mcpu as taken that no thread holds; '
                '"vsched-agent doctor" tells how to get them back'
                % now.leaked_mcpu, figures={'leaked_mcpu': now.leaked_mcpu})
        if before is None or before.capacity_mcpu == now.capacity_mcpu:
            return False
        self.event(
            errors.Code.CAPACITY_CHANGED, Severity.WARNING
            if now.capacity_mcpu < before.capacity_mcpu else Severity.INFO,
            'the host can promise %d mcpu on %d CPUs, before it was %d on '
            '%d' % (now.capacity_mcpu, now.cpus, before.capacity_mcpu,
                    before.cpus),
            figures={'capacity_mcpu': now.capacity_mcpu,
                     'before_mcpu': before.capacity_mcpu})
        return True

    def _trim(self) -> None:
        dropped = self._journal.trim(self._outbox_batches)
        if dropped:
            self._full = True
            samples = sum(len(report.usage) for report in dropped)
            self.event(
                errors.Code.REPORTS_DROPPED, Severity.WARNING,
                '%d batches with %d samples waited too long and were '
                'dropped' % (len(dropped), samples),
                figures={'batches': len(dropped), 'samples': samples})


def _report(domain: base.Domain, wanted: wants.Wanted,
            held: in_force.Holding | None, state: State,
            cause: errors.VschedError | None,
            ) -> messages.ReservationReport:
    now = time.time()
    promise, enforced = wanted.promise, held.promise if held else None
    return messages.ReservationReport(
        instance_uuid=domain.uuid, source=wanted.source, state=state,
        vcpus=len(domain.vcpus), since=now, generation=wanted.generation,
        runtime_us=promise.runtime_us if promise else None,
        period_us=promise.period_us if promise else None,
        mode=str(promise.mode) if promise else None,
        backend=promise.backend if promise else None,
        enforced_backend=held.backend if held else None,
        enforced_runtime_us=enforced.runtime_us if enforced else None,
        enforced_period_us=enforced.period_us if enforced else None,
        attested_at=now if held else None,
        code=str(cause.code) if cause else None,
        detail=cause.detail if cause else None,
        figures=getattr(cause, 'figures', {}))


def _gist(report: messages.ReservationReport) -> tuple[ty.Any, ...]:
    # Figures of a refusal move with every neighbour; they are no news. What
    # is wrong with the text of a reservation changes with the text only.
    return (report.source, report.generation, report.runtime_us,
            report.period_us, report.mode, report.backend, report.vcpus,
            report.enforced_backend, report.enforced_runtime_us,
            report.enforced_period_us, report.state, report.code,
            report.detail if report.code in _TOLD_ANEW else None)


def _sentence(domain: base.Domain,
              report: messages.ReservationReport) -> str:
    if report.state == State.RELEASED:
        return '%s has no reservation any more' % domain.name
    if report.state == State.APPLIED:
        return '%s: %d vCPUs hold %d us every %d us by %s' % (
            domain.name, report.vcpus, report.enforced_runtime_us or 0,
            report.enforced_period_us or 0, report.enforced_backend)
    keeps = 'it keeps what it had' if report.state == State.REFUSED else (
        'held by %s instead' % report.enforced_backend)
    return '%s: %s (%s)' % (domain.name, report.detail, keeps)
