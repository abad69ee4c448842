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

"""The agent's loop: observe, plan, apply, attest, report.

Once a second, and at once when an instance or an override changes. What an
instance should have is decided in one place (:mod:`vsched_agent.wanted`),
and it comes to have it in another (:mod:`vsched_agent.settler`); this module
says when, and sees to it that it stays so.
"""

from collections.abc import Iterable
import dataclasses
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent import bulletin as bulletins
from vsched_agent import charging as chargings
from vsched_agent import enforcer as enforcers
from vsched_agent.hypervisor import base
from vsched_agent import journal as journals
from vsched_agent import settler as settlers
from vsched_agent import sources
from vsched_agent import wanted as wants
from vsched_lib.contract import errors
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)


#: The driver connects in the background; this long after the start the
#: hypervisor is not lost but not there yet, in seconds.
GRACE_S = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How the loop behaves; see the options of the same names."""

    host: str
    interval_s: float = 1.0
    full_sync_s: float = 30.0
    report_interval_s: float = 5.0
    outbox_batches: int = 20_000


class Reconciler:
    """Keeps every instance at what it should have.

    :param settings: intervals and bounds.
    :param hypervisor: the driver; started and stopped by the service.
    :param enforcer: what holds the reservations.
    :param journal: the agent's memory.
    :param meter: reads the instances' CPU time.
    :param host_info: what the host is and can promise, now.
    :param on_batch: called when a batch waits in the journal.
    :param profiles: tells of new profiles; None when there are none.
    :param charging: decides who pays for the host's work on I/O; None when
        nobody does.
    :param costs: tells what I/O costs; None when nobody knows.
    :param balloons: which vCPUs instances have; None when all have all.
    """

    def __init__(self, settings: Settings, hypervisor: base.Hypervisor,
                 enforcer: enforcers.Enforcer, journal: journals.Journal,
                 meter: sources.Meter,
                 host_info: ty.Callable[[], messages.HostInfo],
                 on_batch: ty.Callable[[], None],
                 profiles: sources.Profiles | None = None,
                 charging: chargings.Charging | None = None,
                 costs: sources.Costs | None = None,
                 balloons: sources.Balloons | None = None) -> None:
        self._settings = settings
        self._hypervisor = hypervisor
        self._enforcer = enforcer
        self._journal = journal
        self._meter = meter
        self._host_info = host_info
        self._on_batch = on_batch
        self._profiles = profiles
        self._costs = costs
        self._charging = charging or chargings.Charging(
            chargings.Settings(enabled=False), enforcer)
        self._balloons = balloons or sources.NoBalloons()
        self._bulletin = bulletins.Bulletin(
            settings.host, journal, settings.outbox_batches)
        self._settler = settlers.Settler(
            enforcer, self._charging, self._balloons, self._bulletin,
            costs, self._retry_unmet)

        self._domains: dict[str, base.Domain] = {}
        self._overrides = {one.instance_uuid: one
                           for one in journal.overrides().overrides}
        # None until the hypervisor was asked with success or has been away
        # for long enough to be called lost.
        self._known: bool | None = None
        self._lost_at = time.monotonic() + GRACE_S
        self._plan_all = True
        self._replan: set[str] = set()
        # Instances that could not be dealt with, as their threads were gone:
        # tried again when the interval is over, not at once and all the
        # time.
        self._pending: set[str] = set()

        self._lock = threading.Lock()
        self._dirty: set[str] = set()
        self._sync = True
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._next_sync = 0.0
        self._next_report = 0.0
        self._thread = threading.Thread(
            target=self._run, name='vsched-reconciler', daemon=True)

    # What others may call from their threads

    def start(self) -> None:
        """Begin the loop."""
        self._bulletin.event(
            errors.Code.AGENT_STARTED, messages.Severity.INFO,
            'the agent of %s has started' % self._settings.host)
        self._thread.start()

    def stop(self) -> None:
        """End the loop; everything stays in force."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def changed(self, uuid: str | None) -> None:
        """An instance changed, or with None anything may have."""
        with self._lock:
            if uuid is None:
                self._sync = True
            else:
                self._dirty.add(uuid)
        self._wake.set()

    def resync(self) -> None:
        """The next batch should tell everything."""
        self._bulletin.resync()

    def job(self, report: messages.JobReport) -> None:
        """A job got further."""
        self._bulletin.job(report)
        self._wake.set()

    def balloon(self, told: bulletins.Balloon) -> None:
        """An instance has other vCPUs, or stands differently."""
        self._bulletin.balloon(told)
        self._wake.set()

    def event(self, code: str, severity: messages.Severity, detail: str,
              instance_uuid: str | None = None,
              figures: dict[str, ty.Any] | None = None) -> None:
        """Something happened beside the loop."""
        self._bulletin.event(code, severity, detail, instance_uuid, figures)
        self._wake.set()

    def set_overrides(self, overrides: messages.Overrides) -> None:
        """Take over the host's overrides and act on what changed."""
        self._journal.replace_overrides(overrides)
        newer = {one.instance_uuid: one for one in overrides.overrides}
        with self._lock:
            self._dirty.update(
                uuid for uuid in self._overrides.keys() | newer.keys()
                if self._overrides.get(uuid) != newer.get(uuid))
            self._overrides = newer
        self._wake.set()

    # The loop

    def _run(self) -> None:
        tick = time.monotonic()
        while not self._stopping.is_set():
            due = time.monotonic() >= tick
            if due:
                tick = max(tick + self._settings.interval_s,
                           time.monotonic())
            try:
                self.run_pass(due)
            except Exception:
                # Enforcement is the kernel's by now; the loop must live to
                # attest it at the next pass.
                LOG.exception('a pass failed')
            self._wake.wait(max(0.0, tick - time.monotonic()))
            self._wake.clear()
        # What was said last is for the collector as well.
        if self._bulletin.eventful:
            self._report()

    def run_pass(self, due: bool = True) -> None:
        """One pass.

        :param due: whether the interval is over; else only what changed is
            looked at.
        """
        if due:
            with self._lock:
                self._dirty |= self._pending
            self._pending = set()
        if due:
            self._hear()
        self._observe()
        self._plan()
        if due:
            self._attest()
            self._account()
            if self._known:
                self._balloons.look(self._domains.values())
        self._report()

    def _account(self) -> None:
        domains = list(self._domains.values())
        samples = self._meter.sample(domains, self._enforcer.promised())
        self._bulletin.used(samples, self._meter.host)
        if self._costs is not None:
            self._costs.used(samples)
        before = self._enforcer.admitted_mcpu()
        for news in self._charging.look(
                domains, samples, self._meter.readings):
            if news.uuid in self._domains:
                self._bulletin.io(self._domains[news.uuid], news)
        if self._enforcer.admitted_mcpu() < before:
            self._retry_unmet()

    def _hear(self) -> None:
        news = () if self._profiles is None else self._profiles.look()
        for profile, changes in news:
            self._bulletin.profile(profile, changes)
            # What was granted by an older one may need another margin.
            self._replan |= self._domains.keys()
        for priced in self._costs.look() if self._costs else ():
            self._bulletin.overhead(priced)
            self._retry_unmet()

    def _observe(self) -> None:
        now = time.monotonic()
        with self._lock:
            dirty, self._dirty = self._dirty, set()
            sync = self._sync or now >= self._next_sync
            self._sync = False
        try:
            if sync:
                found = {one.uuid: one
                         for one in self._hypervisor.domains()}
                self._next_sync = now + self._settings.full_sync_s
                for uuid in self._domains.keys() - found.keys():
                    self._gone(uuid)
                if self._plan_all:
                    self._forget_strangers(found.keys())
                dirty |= {uuid for uuid, one in found.items()
                          if self._domains.get(uuid) != one}
                self._domains = found
                self._retry_unmet()
            else:
                for uuid in dirty:
                    one = self._hypervisor.domain(uuid)
                    if one is not None:
                        self._domains[uuid] = one
                    elif uuid in self._domains:
                        del self._domains[uuid]
                        self._gone(uuid)
        except Exception as error:
            with self._lock:
                self._dirty |= dirty
                self._sync = self._sync or sync
            if not isinstance(error, base.HypervisorUnavailable):
                raise
            self._hypervisor_is(False, str(error))
            return
        self._hypervisor_is(True, 'the hypervisor answers again')
        self._replan |= dirty

    def _hypervisor_is(self, known: bool, detail: str) -> None:
        before = self._known
        if known == before or (
                before is None and not known and
                time.monotonic() < self._lost_at):
            return
        self._known = known
        if before is None and known:
            return
        self._bulletin.event(
            errors.Code.HYPERVISOR_BACK if known
            else errors.Code.HYPERVISOR_LOST,
            messages.Severity.INFO if known else messages.Severity.ERROR,
            detail)

    def _gone(self, uuid: str) -> None:
        self._enforcer.drop(uuid)
        self._charging.forget(uuid)
        self._settler.forget(uuid)
        self._bulletin.forget(uuid)
        self._retry_unmet()

    def _forget_strangers(self, running: Iterable[str]) -> None:
        known = {uuid for uuid, _ in self._journal.touched()}
        for uuid in (known | set(self._bulletin.spoken_of)) - set(running):
            self._gone(uuid)

    def _retry_unmet(self) -> None:
        # Room has been made, or its size is not known any more.
        self._replan |= self._bulletin.unmet()

    def _plan(self) -> None:
        with self._lock:
            overrides = self._overrides
        replan, self._replan = self._replan, set()
        todo = [(self._domains[uuid], wants.of(
            self._domains[uuid], overrides.get(uuid)))
            for uuid in sorted(replan) if uuid in self._domains]
        if self._plan_all and self._known:
            # What an earlier agent left in force comes first: a newcomer
            # must not be admitted into room that is taken.
            self._plan_all = False
            for domain, wanted in todo:
                self._enforcer.adopt(
                    domain, wanted.io_charging != wants.CHARGE)
        for domain, wanted in todo:
            try:
                settled = self._settler.settle(domain, wanted)
            except Exception:
                # One instance's trouble is none of the others'.
                LOG.exception('%s could not be dealt with; it is tried '
                              'again', domain.name)
                settled = False
            if not settled:
                self._pending.add(domain.uuid)

    def _attest(self) -> None:
        drifts, stale = self._enforcer.attest()
        for drift in drifts:
            self._bulletin.event(
                errors.Code.DRIFT_REPAIRED, messages.Severity.WARNING,
                'instance %s had drifted: %s' % (
                    drift.instance_uuid, drift.found),
                drift.instance_uuid, {'tids': list(drift.tids)})
        for uuid in stale:
            self.changed(uuid)
        if self._profiles is not None:
            drifted = {drift.instance_uuid for drift in drifts}
            self._profiles.attested(
                held for uuid, held in self._enforcer.holdings()
                if uuid not in drifted)

    def _report(self) -> None:
        now = time.monotonic()
        if not self._known and not self._bulletin.eventful:
            return
        # Passes are never quite on time: one that is nearly due reports.
        early_s = self._settings.interval_s / 2
        if not self._bulletin.urgent and now < self._next_report - early_s:
            return
        self._next_report = now + self._settings.report_interval_s
        info = self._host_info()
        if self._bulletin.compare(info):
            self._retry_unmet()
        # Before the first look no list is the list of those that run.
        self._bulletin.post(
            info, None if self._plan_all else self._domains.values())
        self._on_batch()
