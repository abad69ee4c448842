# SPDX-License-Identifier: Apache-2.0

"""Reports the state of instances' reservations, I/O threads and periods."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import time
import typing as ty

from vsched_agent.communication import base as communication
from vsched_agent.hypervisor import base
from vsched_agent.reporting import events as event_queue
from vsched_agent.reservations import applied
from vsched_agent.reservations import desired as desires
from vsched_agent.reservations import io_charging
from vsched_agent.state import store as journals
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages

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
_AUTO = extra_specs.IoCharging.AUTO
#: Codes whose detail is significant: it changes with the cause only.
_SIGNIFICANT_DETAIL = _INVALID_REQUEST | {errors.Code.NOT_CERTIFIED}


class ReservationReports:
    """The last report of each instance, and those that have changed.

    Not thread-safe: the reconciler's thread is its only caller.

    :param journal: keeps the last reports: a restarted agent does not
        repeat an event, and keeps its ``since``.
    :param events: receives the events.
    """

    def __init__(
        self, journal: journals.Journal, events: event_queue.Events
    ) -> None:
        self._journal = journal
        self._events = events
        self._reported = journal.reservations()
        self._changed: dict[str, messages.ReservationReport] = {}

    def __len__(self) -> int:
        return len(self._changed)

    @property
    def reported(self) -> Mapping[str, messages.ReservationReport]:
        """Return the last report of each instance."""
        return self._reported

    @property
    def changed(self) -> Mapping[str, messages.ReservationReport]:
        """Return the reports that no batch has, by instance."""
        return self._changed

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

    def add(
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
        if before is not None and before.communication is not None:
            report = dataclasses.replace(
                report, communication=before.communication
            )
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
            self._events.add(
                _CODE[State.DEGRADED]
                if state is State.DEGRADED
                else report.code or _CODE[state],
                _LEVEL[state],
                _sentence(domain, report),
                domain.uuid,
                figures,
            )

    def add_io(
        self, domain: base.Domain, change: io_charging.IoChange
    ) -> None:
        """Report the state of an instance's I/O threads."""
        before = self._reported.get(domain.uuid)
        if before is not None and before.io != change.io:
            self._update_io(before, change.io)
        if not change.eventful:
            return
        if change.refusal is not None:
            self._events.add(
                errors.Code.IO_REFUSED,
                # Nothing that was asked for is missing where the threads
                # get what is left.
                Severity.INFO
                if change.io is not None and change.io.charging == _AUTO
                else Severity.WARNING,
                '%s: its I/O threads lack their reservations: %s'
                % (domain.name, change.refusal.detail),
                domain.uuid,
                {**change.refusal.figures, 'cause': str(change.refusal.code)},
            )
        else:
            self._events.add(
                errors.Code.IO_HELD,
                Severity.INFO,
                '%s: its I/O threads have their reservations again'
                % domain.name,
                domain.uuid,
            )

    def add_communication(
        self, domain: base.Domain, change: communication.Change
    ) -> None:
        """Report how finely an instance's periods are divided."""
        before = self._reported.get(domain.uuid)
        if before is not None and before.communication != change.report:
            report = dataclasses.replace(before, communication=change.report)
            self._reported[domain.uuid] = report
            self._changed[domain.uuid] = report
        if change.event is not None:
            self._events.add(
                change.event.code,
                change.event.severity,
                '%s: %s' % (domain.name, change.event.detail),
                domain.uuid,
                change.event.figures,
            )

    def _update_io(
        self, before: messages.ReservationReport, io: messages.IoReport | None
    ) -> messages.ReservationReport:
        before = dataclasses.replace(before, io=io)
        self._reported[before.instance_uuid] = before
        self._changed[before.instance_uuid] = before
        return before

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""
        self._reported.pop(uuid, None)
        self._changed.pop(uuid, None)
        self._journal.note_reservations((), (uuid,))

    def remember(self) -> None:
        """Restore the journal's lost records."""
        self._journal.note_reservations(self._reported.values())

    def sent(self) -> None:
        """Start afresh, as a batch has all that has changed."""
        self._changed = {}


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
