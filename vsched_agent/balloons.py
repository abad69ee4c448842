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

"""Ballooning on this host: what it sees, what it does, what it remembers.

The features don't know each other, so readings, control groups, the journal
and the reservations are brought to :mod:`vsched_agent.ballooning` here.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
import os
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent.accounting import readings
from vsched_agent.ballooning import base as ballooning
from vsched_agent.ballooning import controller
from vsched_agent.ballooning import steps
from vsched_agent.ballooning import turns
from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import topology
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import channel as channels
from vsched_agent import journal as journals
from vsched_agent import shapes as shapes_of
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: On top of what a guest may take when the agent stops, in seconds.
_STOP_S = 10.0


class Meter(ty.Protocol):
    """What :class:`vsched_agent.accounting.usage.UsageMeter` offers."""

    readings: Mapping[str, readings.Reading]


def settings(conf: cfg.ConfigOpts) -> ballooning.Settings:
    """The options of [ballooning] as its parts take them."""
    options = conf.ballooning
    return ballooning.Settings(
        contention.Thresholds(
            options.wait_share, options.yields_per_timeslice,
            samples=options.samples),
        balloon_trial.Pace(
            options.settle, options.trial, options.calm, options.cooldown,
            options.backoff, options.backoff_max),
        balloon_trial.Bar(
            options.progress_gain, options.wait_cut, options.run_kept),
        options.active_cpus, options.progress_path, options.guest_timeout,
        options.bind, options.mode == 'dry_run', options.unplug,
        options.turn_us)


class Balloons:
    """Everything about ballooning that the service knows of.

    :param conf: with the group ``ballooning`` registered.
    :param channel: the way to the guests.
    :param journal: the agent's memory.
    :param meter: whose readings tell what vCPUs do.
    :param tell: where events go.
    :param publish: where it is told how instances stand.
    :param changed: has the reconciler look at an instance.
    """

    def __init__(self, conf: cfg.ConfigOpts, channel: channels.VcpuChannel,
                 journal: journals.Journal, meter: Meter,
                 tell: ballooning.Tell, publish: ballooning.Publish,
                 changed: ty.Callable[[str], None]) -> None:
        self._settings = settings(conf)
        self._channel = channel
        self._meter = meter
        self._journal = journal
        self.shapes = shapes_of.Shapes(changed)
        self._wishes: dict[str, tuple[
            Mapping[str, str], ballooning.Wishes]] = {}
        self._watching = False
        self._controller = controller.Controller(
            self._settings, channel,
            steps.Steps(channel, _Hands(self.shapes, self._settings.turn_us),
                        journal, self._settings),
            tell, topology.ordered_cpus, publish)

    def start(self) -> None:
        """Take up what an earlier agent left, and begin.

        To be called before any reservation is looked at.
        """
        for record in self._controller.recover():
            self.shapes.expect(record.instance_uuid, _shape(record))
            self._watch()
        self._controller.start()
        # As last heard; the collector may be away.
        self.order(self._journal.overrides().balloons)

    def stop(self) -> None:
        """Give all vCPUs back; the reconciler still has to run."""
        self._controller.stop(self._settings.guest_timeout_s + _STOP_S)
        if self._watching:
            self._channel.stop()

    def _watch(self) -> None:
        # A host without such instances needs no way to its guests.
        if not self._watching:
            self._watching = True
            self._channel.start()

    def of(self, domain: base.Domain,
           promise: reservation.Reservation | None,
           ) -> tuple[base.Domain, reservation.Reservation | None]:
        """See :meth:`shapes.Shapes.of`."""
        return self.shapes.of(domain, promise)

    def settled(self, uuid: str,
                problem: errors.VschedError | None) -> None:
        """See :meth:`shapes.Shapes.settled`."""
        self.shapes.settled(uuid, problem)

    def order(self, orders: Iterable[contract.BalloonOrder]) -> None:
        """These are all that operators want of this host."""
        self._controller.order(orders)

    def changed(self, uuid: str | None) -> None:
        """The hypervisor says that an instance changed."""
        self._controller.changed(uuid)

    def look(self, domains: Iterable[base.Domain]) -> None:
        """Once an interval, by the thread that owns the meter."""
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
        self._controller.look([
            self._sample(domain, one, found.get(domain.uuid))
            for domain, one in zip(running, wishes, strict=True)])

    def _sample(self, domain: base.Domain, wishes: ballooning.Wishes,
                reading: readings.Reading | None) -> ballooning.Sample:
        uses = {}
        if reading is not None:
            by_tid = {use.tid: use for use in reading.threads}
            for vcpu in domain.vcpus:
                use = by_tid.get(vcpu.tid)
                if use is not None:
                    uses[vcpu.index] = contention.VcpuUse(
                        use.run_ns, use.wait_ns, use.timeslices)
        return ballooning.Sample(
            domain, wishes, reading.interval_ns if reading else 0, uses,
            self.shapes.promise(domain.uuid))

    def _read_wishes(self, domain: base.Domain) -> ballooning.Wishes:
        known = self._wishes.get(domain.uuid)
        if known is not None and known[0] is domain.extra_specs:
            return known[1]
        wishes = wishes_of(domain)
        self._wishes[domain.uuid] = (domain.extra_specs, wishes)
        return wishes


def wishes_of(domain: base.Domain) -> ballooning.Wishes:
    """What an instance's metadata says; text that can't be read says no."""
    try:
        values: Mapping[str, ty.Any] = extra_specs.parse(
            domain.extra_specs).values
    except errors.InvalidExtraSpecs:
        return ballooning.Wishes()
    return ballooning.Wishes(
        values['balloon'] == extra_specs.Balloon.AUTO,
        values['min_vcpus'], values['weight'])


def give_back(conf: cfg.ConfigOpts, channel: channels.VcpuChannel,
              journal: journals.Journal) -> list[str]:
    """Undo what an agent left that does not run any more.

    :param channel: not started yet.
    :returns: a sentence on each instance that is not as it was found.
    """
    shapes = shapes_of.Shapes(lambda _uuid: None)
    doing = steps.Steps(channel, _LooseHands(shapes), journal,
                        settings(conf))
    records, problems = doing.records(), []
    if not records:
        return []
    channel.start()
    try:
        for record in records:
            if not os.path.exists('/proc/%d' % record.pid):
                doing.forget(record.instance_uuid)
                continue
            try:
                doing.grow(record, strayed=True)
            except steps.StepFailed as failure:
                problems.append('instance %s has vCPUs %s only: %s' % (
                    record.instance_uuid, list(record.online), failure))
    finally:
        channel.stop()
    return problems


def _shape(record: ballooning.Record) -> shapes_of.Shape:
    return shapes_of.Shape(
        record.pid, frozenset(record.online), dict(record.pins),
        len(record.configured))


class _Hands:
    """Control groups and reservations, as ballooning wants them."""

    def __init__(self, shapes: shapes_of.Shapes, turn_us: int = 0) -> None:
        self._shapes = shapes
        self._affinity = affinity.Affinity()
        self._turns = turns.Turns(turn_us)

    def prepare(self) -> None:
        """See :class:`ballooning.Hands`."""
        self._turns.prepare()

    def hastened(self, domain: base.Domain,
                 limit_s: float) -> contextlib.AbstractContextManager[None]:
        """See :class:`ballooning.Hands`."""
        return self._turns.shorter(
            [vcpu.tid for vcpu in domain.vcpus], limit_s)

    def found(self, domain: base.Domain, indexes: Sequence[int],
              ) -> Sequence[Mapping[str, ty.Any]] | None:
        """See :class:`ballooning.Hands`."""
        found = []
        try:
            for target in _targets(domain, dict.fromkeys(indexes, 0)):
                one = self._affinity.confinement(target)
                found.append({'tid': one.tid, 'path': one.path,
                              'cpuset': one.cpuset,
                              'cpus': sorted(one.cpus)})
        except (errors.Refused, ProcessLookupError) as failure:
            LOG.warning('%s: its vCPUs are not bound: %s', domain.name,
                        failure)
            return None
        return found

    def bind(self, domain: base.Domain, pins: Mapping[int, int]) -> None:
        """See :class:`ballooning.Hands`."""
        try:
            with self._affinity.widened(_targets(domain, pins)):
                pass
        except ProcessLookupError as failure:
            raise errors.Refused(
                'a vCPU thread is gone: %s' % failure,
                errors.Code.THREADS_GONE) from None

    def forget(self, uuid: str) -> None:
        """See :class:`ballooning.Hands`."""
        self._shapes.forget(uuid)

    def reshape(self, uuid: str, record: ballooning.Record | None,
                loose: ballooning.Record | None = None) -> None:
        """See :class:`ballooning.Hands`."""
        self._shapes.reshape(
            uuid, None if record is None else _shape(record),
            loosen=None if loose is None else functools.partial(
                self._unbind, loose))

    def _unbind(self, record: ballooning.Record) -> None:
        self._affinity.confine([
            affinity.Confinement(one['tid'], one['path'], one['cpuset'],
                                 frozenset(one['cpus']))
            for one in record.found
            if os.path.exists('/proc/%d/task/%d' % (
                record.pid, one['tid']))])


class _LooseHands(_Hands):
    """For when no reconciler runs: reservations are dealt with apart."""

    def reshape(self, uuid: str, record: ballooning.Record | None,
                loose: ballooning.Record | None = None) -> None:
        if loose is not None:
            self._unbind(loose)
        self._shapes.forget(uuid)


def _targets(domain: base.Domain,
             pins: Mapping[int, int]) -> list[enforcement.Target]:
    return [enforcement.Target(
        vcpu.index, vcpu.tid, frozenset((pins[vcpu.index],)))
        for vcpu in domain.vcpus if vcpu.index in pins]
