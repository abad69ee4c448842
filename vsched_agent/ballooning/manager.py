# SPDX-License-Identifier: Apache-2.0

"""Connect ballooning to accounting, affinity, journal and reservations."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
import os
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent.accounting import base as readings
from vsched_agent.ballooning import base as ballooning
from vsched_agent.ballooning import planner
from vsched_agent.ballooning import preemption
from vsched_agent.ballooning import transaction
from vsched_agent.ballooning import vcpu_set as shapes_of
from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base as enforcement
from vsched_agent.host import topology
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_agent import problem_log
from vsched_agent.state import store as journals
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention
from vsched_lib.model import reservation

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


class Balloons:
    """The interface of ballooning for the service.

    :param conf: with the group ``ballooning`` registered.
    :param channel: the channel to the guests.
    :param journal: the agent's journal.
    :param meter: provides readings of vCPU threads.
    :param tell: emits events.
    :param publish: reports instances' states.
    :param changed: makes the reconciler handle an instance.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        channel: channels.VcpuChannel,
        journal: journals.Journal,
        meter: Meter,
        tell: ballooning.Tell,
        publish: ballooning.Publish,
        changed: ty.Callable[[str], None],
    ) -> None:
        self._settings = settings(conf)
        self._channel = channel
        self._meter = meter
        self._journal = journal
        self.shapes = shapes_of.Shapes(changed)
        self._wishes: dict[
            str, tuple[Mapping[str, str], ballooning.Wishes]
        ] = {}
        self._watching = False
        self._problems = problem_log.ProblemLog(LOG)
        self._controller = planner.Controller(
            self._settings,
            channel,
            transaction.Steps(
                channel,
                _HostActions(self.shapes, self._settings.turn_us),
                journal,
                self._settings,
            ),
            tell,
            topology.ordered_cpus,
            publish,
        )

    def start(self) -> None:
        """Recover an earlier agent's balloons, and start.

        Call it before reservations are reconciled.
        """
        for record in self._controller.recover():
            self.shapes.expect(record.instance_uuid, _shape(record))
            self._watch()
        self._controller.start()
        # The last known requests; the collector may be unavailable.
        self.order(self._journal.overrides().balloons)

    def stop(self) -> None:
        """Give all vCPUs back; the reconciler must still run."""
        self._controller.stop(self._settings.guest_timeout_s + _STOP_S)
        if self._watching:
            self._channel.stop()

    def _watch(self) -> None:
        # A host without such instances needs no channel to its guests.
        if not self._watching:
            self._watching = True
            self._channel.start()

    def of(
        self, domain: base.Domain, reserved: reservation.Reservation | None
    ) -> tuple[base.Domain, reservation.Reservation | None]:
        """See :meth:`shapes.Shapes.of`."""
        return self.shapes.of(domain, reserved)

    def reconciled(
        self, uuid: str, problem: errors.VschedError | None
    ) -> None:
        """See :meth:`shapes.Shapes.reconciled`."""
        self.shapes.reconciled(uuid, problem)

    def order(self, orders: Iterable[contract.BalloonOrder]) -> None:
        """Set all of the operators' requests for this host."""
        self._controller.order(orders)

    def changed(self, uuid: str | None) -> None:
        """Handle a hypervisor event about an instance."""
        self._controller.changed(uuid)

    def sample(self, domains: Iterable[base.Domain]) -> None:
        """Sample instances; called once an interval by the meter's thread."""
        running = list(domains)
        uuids = {domain.uuid for domain in running}
        wishes = [self._read_wishes(domain) for domain in running]
        if not self._watching and not any(one.auto for one in wishes):
            return
        self._watch()
        for uuid in self._wishes.keys() - uuids:
            del self._wishes[uuid]
        self.shapes.keep(uuids)
        found = self._meter.readings
        samples = []
        for domain, one in zip(running, wishes, strict=True):
            try:
                samples.append(
                    self._sample(domain, one, found.get(domain.uuid))
                )
            except Exception as error:
                self._problems.failed(
                    domain.uuid,
                    error,
                    '%s: ballooning cannot sample it',
                    domain.name,
                )
        self._controller.add_samples(samples)

    def records_lost(self, domains: Iterable[base.Domain]) -> None:
        """Store records again, and find lost ones, after journal damage."""
        self._watch()
        self._controller.records_lost(
            frozenset(domain.uuid for domain in domains)
        )

    def _sample(
        self,
        domain: base.Domain,
        wishes: ballooning.Wishes,
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
            wishes,
            reading.interval_ns if reading else 0,
            uses,
            self.shapes.reserved(domain.uuid),
        )

    def _read_wishes(self, domain: base.Domain) -> ballooning.Wishes:
        known = self._wishes.get(domain.uuid)
        if known is not None and known[0] == domain.extra_specs:
            return known[1]
        wishes = wishes_of(domain)
        self._wishes[domain.uuid] = (domain.extra_specs, wishes)
        return wishes


def wishes_of(domain: base.Domain) -> ballooning.Wishes:
    """Return the settings in an instance's metadata; defaults if invalid."""
    try:
        values: Mapping[str, ty.Any] = extra_specs.parse(
            domain.extra_specs
        ).values
    except errors.InvalidExtraSpecs:
        return ballooning.Wishes()
    return ballooning.Wishes(
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
    shapes = shapes_of.Shapes(lambda _uuid: None)
    doing = transaction.Steps(
        channel, _OfflineHostActions(shapes), journal, settings(conf)
    )
    records, problems = doing.records(), []
    known = {record.instance_uuid for record in records}
    unknown = [one for one in orphans if one.uuid not in known]
    if not records and not unknown:
        return []
    channel.start()
    try:
        for record in records:
            try:
                if os.path.exists('/proc/%d' % record.pid):
                    doing.grow(record, unexpected_online=True)
                else:
                    doing.forget(record.instance_uuid)
            except transaction.StepFailed as failure:
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
                doing.bring_all_online(domain)
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


def _shape(record: ballooning.Record) -> shapes_of.Shape:
    return shapes_of.Shape(
        record.pid, frozenset(record.online), dict(record.pins)
    )


class _HostActions:
    """Implements ballooning's actions on the host."""

    def __init__(self, shapes: shapes_of.Shapes, turn_us: int = 0) -> None:
        self._shapes = shapes
        self._affinity = affinity.Affinity()
        self._preemption = preemption.ForcedPreemption(turn_us)

    def prepare(self) -> None:
        """See :class:`ballooning.HostActions`."""
        self._preemption.prepare()

    def preempt_faster(
        self, domain: base.Domain, limit_s: float
    ) -> contextlib.AbstractContextManager[None]:
        """See :class:`ballooning.HostActions`."""
        return self._preemption.enabled(
            [vcpu.tid for vcpu in domain.vcpus], limit_s
        )

    def found(
        self, domain: base.Domain, indexes: Sequence[int]
    ) -> Sequence[Mapping[str, ty.Any]] | None:
        """See :class:`ballooning.HostActions`."""
        found = []
        try:
            for target in _targets(domain, dict.fromkeys(indexes, 0)):
                one = self._affinity.confinement(target)
                found.append(
                    {
                        'tid': one.tid,
                        'path': one.path,
                        'cpuset': one.cpuset,
                        'cpus': sorted(one.cpus),
                    }
                )
        except (errors.Refused, ProcessLookupError) as failure:
            LOG.warning(
                '%s: its vCPUs are not bound: %s', domain.name, failure
            )
            return None
        return found

    def bind(self, domain: base.Domain, pins: Mapping[int, int]) -> None:
        """See :class:`ballooning.HostActions`."""
        try:
            with self._affinity.widened(_targets(domain, pins)):
                pass
        except ProcessLookupError as failure:
            raise errors.Refused(
                'a vCPU thread has ended: %s' % failure,
                errors.Code.THREADS_GONE,
            ) from None

    def forget(self, uuid: str) -> None:
        """See :class:`ballooning.HostActions`."""
        self._shapes.forget(uuid)

    def reshape(
        self,
        uuid: str,
        record: ballooning.Record | None,
        unpin: ballooning.Record | None = None,
    ) -> None:
        """See :class:`ballooning.HostActions`."""
        self._shapes.reshape(
            uuid,
            None if record is None else _shape(record),
            unpin=None
            if unpin is None
            else functools.partial(self._unbind, unpin),
        )

    def _unbind(self, record: ballooning.Record) -> None:
        self._affinity.confine(
            [
                affinity.Confinement(
                    one['tid'],
                    one['path'],
                    one['cpuset'],
                    frozenset(one['cpus']),
                )
                for one in record.found
                if os.path.exists(
                    '/proc/%d/task/%d' % (record.pid, one['tid'])
                )
            ]
        )


class _OfflineHostActions(_HostActions):
    """For use without a reconciler: reservations are restored separately."""

    def reshape(
        self,
        uuid: str,
        record: ballooning.Record | None,
        unpin: ballooning.Record | None = None,
    ) -> None:
        if unpin is not None:
            self._unbind(unpin)
        self._shapes.forget(uuid)


def _targets(
    domain: base.Domain, pins: Mapping[int, int]
) -> list[enforcement.Target]:
    return [
        enforcement.Target(
            vcpu.index, vcpu.tid, frozenset((pins[vcpu.index],))
        )
        for vcpu in domain.vcpus
        if vcpu.index in pins
    ]
