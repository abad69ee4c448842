# SPDX-License-Identifier: Apache-2.0

"""The agent's loop: observe, plan, apply, attest, report.

It runs once per interval, and at once when an instance or an override
changes. :mod:`vsched_agent.reservations.desired` decides what an instance
should have, :mod:`vsched_agent.reconciliation.instance` applies it. This
module decides when, attests it afterwards and repairs drift.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.hypervisor import base
from vsched_agent.reconciliation import account
from vsched_agent.reconciliation import instance as instance_reconciler
from vsched_agent.reconciliation import interfaces
from vsched_agent.reconciliation import measured
from vsched_agent.reconciliation import observer
from vsched_agent.reconciliation import recovery
from vsched_agent.reporting import report_builder
from vsched_agent.reservations import desired as desires
from vsched_agent.reservations import enforcer as enforcers
from vsched_agent.reservations import io_charging
from vsched_agent.state import store as journals
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The options of the same names."""

    host: str
    interval_s: float = 1.0
    full_sync_s: float = 30.0
    report_interval_s: float = 5.0
    outbox_batches: int = 20_000


class Reconciler:
    """Keeps every instance's applied reservation equal to the desired one.

    :param settings: intervals and bounds.
    :param hypervisor: the driver; started and stopped by the service.
    :param enforcer: applies reservations.
    :param journal: the agent's persistent state.
    :param meter: reads the instances' CPU time.
    :param host_info: returns the host's present properties and capacity.
    :param profiles: source of new profiles; None without any.
    :param charging: charges instances for I/O; None without charging.
    :param costs: source of the prices of I/O; None without prices.
    :param balloons: has the online vCPUs; None without ballooning.
    :param on_lost_overrides: fetches all overrides from the collector.
    :param communication: divides periods; None for never.
    :param watch: counts passes, failures and reports; None for nobody.
    """

    def __init__(
        self,
        settings: Settings,
        hypervisor: base.Hypervisor,
        enforcer: enforcers.Enforcer,
        journal: journals.Journal,
        meter: interfaces.Meter,
        host_info: ty.Callable[[], messages.HostInfo],
        profiles: interfaces.Profiles | None = None,
        charging: io_charging.Charging | None = None,
        costs: interfaces.Costs | None = None,
        balloons: interfaces.Balloons | None = None,
        on_lost_overrides: ty.Callable[[], None] | None = None,
        communication: interfaces.Communication | None = None,
        watch: interfaces.Watch | None = None,
    ) -> None:
        self._settings = settings
        self._enforcer = enforcer
        self._journal = journal
        self._host_info = host_info
        self._profiles = profiles
        self._charging = charging or io_charging.Charging(
            io_charging.Settings(enabled=False), enforcer
        )
        self._balloons = balloons or interfaces.NoBalloons()
        self._on_lost_overrides = on_lost_overrides or (lambda: None)
        self._communication = communication or interfaces.NoCommunication()
        self._problems = problem_log.ProblemLog(LOG)
        self._watch = watch or interfaces.NoWatch()
        self._reports = report_builder.ReportBuilder(
            settings.host,
            journal,
            settings.outbox_batches,
            self._watch.reported,
        )
        self._instances = instance_reconciler.InstanceReconciler(
            enforcer,
            self._charging,
            self._balloons,
            self._reports,
            costs,
            self._retry_unmet,
            self._communication,
        )
        self._accounts = account.Account(
            meter,
            enforcer,
            journal,
            self._reports,
            self._charging,
            costs,
            self._communication,
            self._retry_unmet,
        )
        self._measured = measured.Measured(
            profiles, costs, self._reports, self._replan_all, self._retry_unmet
        )
        self._observer = observer.Observer(
            hypervisor,
            settings.full_sync_s,
            self._reports.events,
            self._listed,
            self._forget,
        )
        self._recovery = recovery.Recovery(
            enforcer, journal, self._balloons, self._reports, self._problems
        )

        self._overrides = {
            one.instance_uuid: one for one in journal.overrides().overrides
        }
        # Instances taken over from the kernel. They keep what they have
        # until the collector has sent the overrides.
        self._awaiting_overrides: set[str] = set()
        self._plan_all = True
        self._replan: set[str] = set()
        # Instances that were not reconciled because their threads had
        # ended: retried once per interval, not in a busy loop.
        self._pending: set[str] = set()

        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._next_report = 0.0
        self._thread = threading.Thread(
            target=self._run, name='vsched-reconciler', daemon=True
        )

    # Safe from any thread

    def start(self) -> None:
        """Start the loop's thread."""
        self._reports.events.add(
            errors.Code.AGENT_STARTED,
            messages.Severity.INFO,
            'the agent of %s has started' % self._settings.host,
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop the loop; all reservations stay in force."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def changed(self, uuid: str | None) -> None:
        """Schedule an instance for reconciliation; None schedules all."""
        if uuid is None:
            self._observer.mark_all()
        else:
            self._observer.mark((uuid,))
        self._wake.set()

    def resync(self) -> None:
        """Make the next batch a full report."""
        self._reports.resync()

    def job(self, report: messages.JobReport) -> None:
        """Report a job's progress."""
        self._reports.job(report)
        self._wake.set()

    def balloon(self, report: report_builder.Balloon) -> None:
        """Report an instance's new online vCPUs or balloon status."""
        self._reports.balloon(report)
        self._wake.set()

    def event(
        self,
        code: str,
        severity: messages.Severity,
        detail: str,
        instance_uuid: str | None = None,
        figures: dict[str, ty.Any] | None = None,
    ) -> None:
        """Report an event."""
        self._reports.events.add(
            code, severity, detail, instance_uuid, figures
        )
        self._wake.set()

    def set_overrides(self, overrides: collector_replies.Overrides) -> None:
        """Store the host's overrides and schedule what changed."""
        self._journal.replace_overrides(overrides)
        newer = {one.instance_uuid: one for one in overrides.overrides}
        with self._lock:
            changed = self._awaiting_overrides | {
                uuid
                for uuid in self._overrides.keys() | newer.keys()
                if self._overrides.get(uuid) != newer.get(uuid)
            }
            self._awaiting_overrides = set()
            self._overrides = newer
        # After them, so that the pass that observes these reads them.
        self._observer.mark(changed)
        self._wake.set()

    # The loop

    def _run(self) -> None:
        tick = time.monotonic()
        while not self._stopping.is_set():
            due = time.monotonic() >= tick
            if due:
                tick = max(tick + self._settings.interval_s, time.monotonic())
            began_s = time.monotonic()
            try:
                self.run_pass(due)
            except Exception as error:
                # The kernel enforces what is applied; the loop has to go
                # on to attest it in the next pass.
                self._problems.failed('pass', error, 'a pass failed')
                self._watch.failed('pass')
            if due:
                self._watch.passed(time.monotonic() - began_s)
            self._wake.wait(max(0.0, tick - time.monotonic()))
            self._wake.clear()
        # Events of the last pass have to reach the collector too.
        self._guarded('report', self._report_last)

    def _report_last(self) -> None:
        if self._reports.eventful:
            self._report()

    def _guarded(self, name: str, step: ty.Callable[[], None]) -> None:
        """Run one step of a pass; log its failure and go on."""
        try:
            step()
        except Exception as error:
            self._problems.failed(
                name, error, 'step "%s" of a pass failed', name
            )
            self._watch.failed(name)

    def run_pass(self, due: bool = True) -> None:
        """Run one pass.

        :param due: whether the interval is over; otherwise only changed
            instances are reconciled.
        """
        if due:
            self._observer.mark(self._pending)
            self._pending = set()
            self._guarded('profiles', self._measured.poll)
        self._guarded('observe', self._observe)
        self._guarded('journal', self._check_journal)
        self._guarded('plan', self._plan)
        if due:
            self._guarded('attest', self._attest)
            self._guarded('account', self._account)
            if self._observer.reachable:
                self._guarded('balloons', self._run_ballooning)
        self._guarded('report', self._report)

    def _run_ballooning(self) -> None:
        with self._lock:
            overrides = self._overrides
        self._balloons.sample(
            [
                desires.effective(domain, overrides.get(domain.uuid))
                for domain in self._observer.domains.values()
            ]
        )

    def _account(self) -> None:
        self._accounts.run(self._observer.domains, listed=not self._plan_all)

    def _replan_all(self) -> None:
        self._replan |= self._observer.domains.keys()

    def _observe(self) -> None:
        changed = self._observer.observe()
        self._replan |= changed

    def _listed(self, found: Mapping[str, base.Domain]) -> None:
        for uuid in self._observer.domains.keys() - found.keys():
            self._guarded(uuid, functools.partial(self._forget, uuid))
        if self._plan_all:
            self._forget_unknown(found.keys())
        self._retry_unmet()

    def _forget(self, uuid: str) -> None:
        self._enforcer.drop(uuid)
        self._charging.forget(uuid)
        self._communication.forget(uuid)
        self._instances.forget(uuid)
        self._reports.forget(uuid)
        self._retry_unmet()

    def _forget_unknown(self, running: Iterable[str]) -> None:
        known = {uuid for uuid, _ in self._journal.touched()}
        for uuid in (
            known | set(self._reports.reservations.reported_instances)
        ) - set(running):
            self._guarded(uuid, functools.partial(self._forget, uuid))

    def _retry_unmet(self) -> None:
        # Capacity was released, or its size may have changed.
        self._replan |= self._reports.reservations.unmet()
        self._replan |= self._instances.unrestored

    def _check_journal(self) -> None:
        """Report the journal's problems, and recover from lost records."""
        for one in self._journal.notices():
            self._reports.events.add(
                one.code, one.severity, one.detail, figures=one.figures
            )
        if not self._observer.reachable:
            return
        taken_over = self._recovery.take_over(self._observer.domains.values())
        if taken_over is None:
            return
        if self._plan_all:
            with self._lock:
                self._awaiting_overrides = taken_over
        else:
            # The overrides are not lost: this process has them in memory.
            self._replan |= taken_over
        self._on_lost_overrides()

    def _plan(self) -> None:
        with self._lock:
            overrides = self._overrides
        replan, self._replan = self._replan, set()
        todo = [
            (
                self._observer.domains[uuid],
                desires.of(self._observer.domains[uuid], overrides.get(uuid)),
            )
            for uuid in sorted(replan)
            if uuid in self._observer.domains
        ]
        if self._plan_all and self._observer.reachable:
            # Adopt all reservations of an earlier agent first, so that no
            # other is admitted into capacity that they use.
            self._plan_all = False
            self._recovery.adopt(todo)
            # What has drifted since is not adopted. It goes before those
            # that had no reservation.
            held = {uuid for uuid, _ in self._journal.touched()}
            todo.sort(key=lambda planned: planned[0].uuid not in held)
        for domain, desired in todo:
            if domain.uuid in self._awaiting_overrides:
                continue
            try:
                reconciled = self._instances.reconcile(domain, desired)
            except Exception as error:
                # A failure must not affect the other instances.
                self._problems.failed(
                    domain.uuid,
                    error,
                    '%s: reconciliation failed; it is tried again',
                    domain.name,
                )
                reconciled = False
            if not reconciled:
                self._pending.add(domain.uuid)

    def _attest(self) -> None:
        drifts, stale = self._enforcer.attest()
        for drift in drifts:
            self._reports.events.add(
                errors.Code.DRIFT_REPAIRED,
                messages.Severity.WARNING,
                'instance %s had drifted: %s'
                % (drift.instance_uuid, drift.found),
                drift.instance_uuid,
                {'tids': list(drift.tids)},
            )
        for uuid in stale:
            self.changed(uuid)
        if self._profiles is not None:
            drifted = {drift.instance_uuid for drift in drifts}
            self._profiles.attested(
                held
                for uuid, held in self._enforcer.holdings()
                if uuid not in drifted
            )

    def _report(self) -> None:
        now = time.monotonic()
        if not self._observer.reachable and not self._reports.eventful:
            return
        # Passes are not exactly on time: one that is nearly due reports.
        early_s = self._settings.interval_s / 2
        if not self._reports.urgent and now < self._next_report - early_s:
            return
        self._next_report = now + self._settings.report_interval_s
        info = self._host_info()
        if self._reports.compare(info):
            self._retry_unmet()
        # Before the first successful listing the instances are unknown.
        self._reports.post(
            info,
            None if self._plan_all else self._observer.domains.values(),
            self._accounts.checkpoint(),
        )
