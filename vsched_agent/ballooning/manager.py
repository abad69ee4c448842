# SPDX-License-Identifier: Apache-2.0

"""Connect ballooning to accounting, affinity, journal and reservations."""

from collections.abc import Iterable
from collections.abc import Mapping
import os
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent.accounting import base as readings
from vsched_agent.ballooning import base as ballooning
from vsched_agent.ballooning import host_actions
from vsched_agent.ballooning import loop
from vsched_agent.ballooning import transaction
from vsched_agent.ballooning import vcpu_set
from vsched_agent.host import topology
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_agent.state import store as journals
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention
from vsched_lib.model import reservation
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

#: Seconds added to the guest timeout when the agent stops.
_STOP_S = 10.0


class Meter(ty.Protocol):
    """What :class:`vsched_agent.accounting.usage.UsageMeter` offers."""

    readings: Mapping[str, readings.Reading]


def settings(conf: cfg.ConfigOpts) -> ballooning.Settings:
    """Return the options of [ballooning] as settings."""
    options = conf.ballooning
    return ballooning.Settings(
        contention.Thresholds(
            options.wait_share,
            options.yields_per_timeslice,
            samples=options.samples,
        ),
        balloon_trial.Pace(
            options.settle,
            options.trial,
            options.calm,
            options.cooldown,
            options.backoff,
            options.backoff_max,
        ),
        balloon_trial.Bar(options.progress_gain, run_kept=options.run_kept),
        options.active_cpus,
        options.progress_path,
        options.guest_timeout,
        options.bind,
        options.mode == 'dry_run',
        options.turn_us,
        options.unknown == 'keep',
    )


class BalloonManager:
    """The interface of ballooning for the service.

    :param conf: with the group ``ballooning`` registered.
    :param channel: the channel to the guests.
    :param journal: the agent's journal.
    :param meter: provides readings of vCPU threads.
    :param emit_event: emits events.
    :param publish: reports instances' states.
    :param changed: makes the reconciler handle an instance.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        channel: channels.VcpuChannel,
        journal: journals.Journal,
        meter: Meter,
        emit_event: ballooning.EventCallback,
        publish: ballooning.Publish,
        changed: ty.Callable[[str], None],
    ) -> None:
        self._settings = settings(conf)
        self._channel = channel
        self._meter = meter
        self._journal = journal
        self.vcpu_sets = vcpu_set.VcpuSets(changed)
        self._flavors: dict[
            str, tuple[Mapping[str, str], ballooning.FlavorSettings]
        ] = {}
        self._channel_started = False
        self._problems = problem_log.ProblemLog(LOG)
        self._loop = loop.BalloonLoop(
            self._settings,
            channel,
            transaction.BalloonTransactions(
                channel,
                host_actions.LocalHostActions(
                    self.vcpu_sets, self._settings.turn_us
                ),
                journal,
                self._settings,
            ),
            emit_event,
            topology.ordered_cpus,
            publish,
        )

    def start(self) -> None:
        """Recover an earlier agent's balloons, and start.

        Call it before reservations are reconciled.
        """
        for record in self._loop.recover():
            self.vcpu_sets.restore(
                record.instance_uuid, host_actions.vcpu_set_of(record)
            )
            self._start_channel()
        self._loop.start()
        # The last known requests; the collector may be unavailable.
        self.order(self._journal.overrides().balloons)

    def stop(self) -> None:
        """Give all vCPUs back; the reconciler must still run."""
        self._loop.stop(self._settings.guest_timeout_s + _STOP_S)
        if self._channel_started:
            self._channel.stop()

    def _start_channel(self) -> None:
        # A host without such instances needs no channel to its guests.
        if not self._channel_started:
            self._channel_started = True
            self._channel.start()

    def of(
        self, domain: base.Domain, reserved: reservation.Reservation | None
    ) -> tuple[base.Domain, reservation.Reservation | None]:
        """See :meth:`vcpu_set.VcpuSets.of`."""
        return self.vcpu_sets.of(domain, reserved)

    def reconciled(
        self, uuid: str, problem: errors.VschedError | None
    ) -> None:
        """See :meth:`vcpu_set.VcpuSets.reconciled`."""
        self.vcpu_sets.reconciled(uuid, problem)

    def order(self, orders: Iterable[contract.BalloonOrder]) -> None:
        """Set all of the operators' requests for this host."""
        self._loop.order(orders)

    def changed(self, uuid: str | None) -> None:
        """Handle a hypervisor event about an instance."""
        self._loop.changed(uuid)

    def sample(self, domains: Iterable[base.Domain]) -> None:
        """Sample instances; called once an interval by the meter's thread."""
        running = list(domains)
        uuids = {domain.uuid for domain in running}
        flavors = [self._flavor_of(domain) for domain in running]
        if not self._channel_started and not any(one.auto for one in flavors):
            return
        self._start_channel()
        for uuid in self._flavors.keys() - uuids:
            del self._flavors[uuid]
        self.vcpu_sets.retain(uuids)
        found = self._meter.readings
        samples = []
        for domain, flavor in zip(running, flavors, strict=True):
            try:
                samples.append(
                    self._sample(domain, flavor, found.get(domain.uuid))
                )
            except Exception as error:
                self._problems.failed(
                    domain.uuid,
                    error,
                    '%s: ballooning cannot sample it',
                    domain.name,
                )
        self._loop.add_samples(samples)

    def records_lost(self, domains: Iterable[base.Domain]) -> None:
        """Store records again, and find lost ones, after journal damage."""
        self._start_channel()
        self._loop.records_lost(frozenset(domain.uuid for domain in domains))

    def _sample(
        self,
        domain: base.Domain,
        flavor: ballooning.FlavorSettings,
        reading: readings.Reading | None,
    ) -> ballooning.Sample:
        uses = {}
        if reading is not None:
            by_tid = {use.tid: use for use in reading.threads}
            for vcpu in domain.vcpus:
                use = by_tid.get(vcpu.tid)
                if use is not None:
                    uses[vcpu.index] = contention.VcpuUse(
                        use.run_ns, use.wait_ns, use.timeslices
                    )
        return ballooning.Sample(
            domain,
            flavor,
            reading.interval_ns if reading else 0,
            uses,
            self.vcpu_sets.reserved(domain.uuid),
        )

    def _flavor_of(self, domain: base.Domain) -> ballooning.FlavorSettings:
        known = self._flavors.get(domain.uuid)
        if known is not None and known[0] == domain.extra_specs:
            return known[1]
        flavor = flavor_settings(domain)
        self._flavors[domain.uuid] = (domain.extra_specs, flavor)
        return flavor


def flavor_settings(domain: base.Domain) -> ballooning.FlavorSettings:
    """Return the settings in an instance's metadata; defaults if invalid."""
    try:
        values: Mapping[str, ty.Any] = extra_specs.parse(
            domain.extra_specs
        ).values
    except errors.InvalidExtraSpecs:
        return ballooning.FlavorSettings()
    return ballooning.FlavorSettings(
        values['balloon'] == extra_specs.Balloon.AUTO,
        values['min_vcpus'],
        values['weight'],
    )


def give_back(
    conf: cfg.ConfigOpts,
    channel: channels.VcpuChannel,
    journal: journals.Journal,
    orphans: Iterable[base.Domain] = (),
) -> list[str]:
    """Undo the balloons of an agent that does not run any more.

    :param channel: not started yet.
    :param orphans: instances that may lack vCPUs without a record, since the
        journal was damaged.
    :returns: a sentence about each instance that could not be restored.
    """
    vcpu_sets = vcpu_set.VcpuSets(lambda _uuid: None)
    transactions = transaction.BalloonTransactions(
        channel,
        host_actions.OfflineHostActions(vcpu_sets),
        journal,
        settings(conf),
    )
    records, problems = transactions.records(), []
    known = {record.instance_uuid for record in records}
    unknown = [one for one in orphans if one.uuid not in known]
    if not records and not unknown:
        return []
    channel.start()
    try:
        for record in records:
            try:
                if os.path.exists('/proc/%d' % record.pid):
                    transactions.grow(record, unexpected_online=True)
                else:
                    transactions.forget(record.instance_uuid)
            except transaction.TransactionFailed as failure:
                problems.append(
                    'instance %s has vCPUs %s only: %s'
                    % (record.instance_uuid, list(record.online), failure)
                )
            except Exception as failure:
                # A failure must not affect other instances.
                LOG.exception('instance %s', record.instance_uuid)
                problems.append(
                    'instance %s has vCPUs %s only: %s'
                    % (
                        record.instance_uuid,
                        list(record.online),
                        ascii(failure)[:300],
                    )
                )
        for domain in unknown:
            try:
                transactions.bring_all_online(domain)
            except Exception as failure:
                # Most have no agent.
                LOG.info(
                    '%s: its online vCPUs are unknown: %s',
                    domain.name,
                    failure,
                )
    finally:
        channel.stop()
    return problems
