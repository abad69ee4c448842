# SPDX-License-Identifier: Apache-2.0

"""The running instances with their samples, records and requests."""

from collections.abc import Callable
from collections.abc import Sequence
import functools

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.ballooning import history as histories
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import transaction
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_lib.contract import balloons
from vsched_lib.model import balloon_trial
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

Instance = instances.Instance

#: Seconds until another read of counters that did not exist.
_COUNTERLESS_S = 60.0


class InstanceTable:
    """Adds and removes instances; used by the loop's thread.

    :meth:`instances` may be called by others.

    :param settings: thresholds, times and so on.
    :param channel: reads counters of yields.
    :param transactions: records of balloons in force.
    :param history: reports ended balloons.
    """

    def __init__(
        self,
        settings: base.Settings,
        channel: channels.VcpuChannel,
        transactions: transaction.BalloonTransactions,
        history: histories.BalloonHistory,
    ) -> None:
        self._settings = settings
        self._channel = channel
        self._transactions = transactions
        self._history = history
        self._problems = problem_log.ProblemLog(LOG)
        self._instances: dict[str, Instance] = {}
        # Records of an earlier agent, of instances not seen yet.
        self._inherited: dict[str, base.Record] = {}
        self._orders: dict[str, balloons.BalloonOrder] = {}
        # Running instances without a reliable record.
        self._orphans: frozenset[str] = frozenset()
        self._yields_s = 0.0

    def recover(self) -> list[base.Record]:
        """Load and return an earlier agent's records."""
        self._inherited = {
            one.instance_uuid: one for one in self._transactions.records()
        }
        return list(self._inherited.values())

    def instances(self) -> list[Instance]:
        """Return the running instances; read-only for other threads."""
        return list(self._instances.values())

    def get(self, uuid: str) -> Instance | None:
        """Return a running instance, None if it is unknown."""
        return self._instances.get(uuid)

    def each(self, step: Callable[[Instance], None]) -> None:
        """Call a function for each instance; log failures."""
        for one in self.instances():
            try:
                step(one)
            except Exception as error:
                self._problems.failed(
                    one.uuid, error, '%s: ballooning failed', one.domain.name
                )

    def set_orders(self, orders: dict[str, balloons.BalloonOrder]) -> None:
        """Set all of the operators' requests, by instance."""
        self._orders = orders
        for one in self._instances.values():
            order = orders.get(one.uuid)
            if one.order != order:
                # A refusal of the former request is obsolete.
                one.order, one.refused, one.order_retry_s = order, None, 0.0

    def records_lost(self, uuids: frozenset[str]) -> None:
        """Store records again; others of these instances are orphans."""
        self._orphans = uuids
        self.each(self._restore_record)

    def _restore_record(self, one: Instance) -> None:
        if one.record is not None:
            self._transactions.note(one.record)
        elif one.uuid in self._orphans and not one.busy:
            one.orphan, one.reachable, one.probes = True, False, 0
            one.retry_s = None

    def add_samples(
        self, samples: Sequence[base.Sample], now_s: float
    ) -> None:
        """Add the samples of all running instances; remove other ones."""
        counters: dict[str, dict[int, int]] = {}
        try:
            counters = self._yields(samples, now_s)
        except Exception as error:
            self._problems.failed('yields', error, 'no counters of yields')
        for sample in samples:
            try:
                self._add(sample, counters.get(sample.domain.uuid), now_s)
            except Exception as error:
                self._problems.failed(
                    sample.domain.uuid,
                    error,
                    '%s: ballooning failed',
                    sample.domain.name,
                )
        seen = {sample.domain.uuid for sample in samples}
        for uuid in self._instances.keys() - seen:
            self._end(
                uuid,
                functools.partial(self._remove, self._instances.pop(uuid)),
            )
        for uuid in self._inherited.keys() - seen:
            self._end(
                uuid,
                functools.partial(
                    self._close_record, self._inherited.pop(uuid)
                ),
            )

    def _end(self, uuid: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._problems.failed(
                uuid, error, 'instance %s: ballooning does not end', uuid
            )

    def _add(
        self, sample: base.Sample, yields: dict[int, int] | None, now_s: float
    ) -> None:
        one = self._instances.get(sample.domain.uuid)
        if one is None or one.domain.pid != sample.domain.pid:
            self._add_instance(sample, one)
            one = self._instances[sample.domain.uuid]
        one.add(
            sample,
            yields,
            not one.busy and one.status.settled(now_s, self._settings.pace),
        )

    def _add_instance(
        self, sample: base.Sample, before: Instance | None
    ) -> None:
        if before is not None:
            self._remove(before)
        uuid = sample.domain.uuid
        one = Instance(sample, self._settings.thresholds)
        self._instances[uuid] = one
        record = self._inherited.pop(uuid, None)
        if record is not None and record.pid == sample.domain.pid:
            one.record = record
            one.return_cause = 'the agent was started anew'
        elif record is not None:
            self._close_record(record)
        else:
            one.orphan = before is None and uuid in self._orphans
        one.order = self._orders.get(uuid)

    def _remove(self, one: Instance) -> None:
        self._history.forget(one.uuid)
        if one.record is not None:
            self._close_record(one.record)
        elif one.busy:
            self._transactions.forget(one.uuid)

    def _close_record(self, record: base.Record) -> None:
        self._history.ended(
            record,
            balloon_trial.Outcome.UNDONE,
            'the instance does not run any more',
        )
        self._transactions.forget(record.instance_uuid)

    def _yields(
        self, samples: Sequence[base.Sample], now_s: float
    ) -> dict[str, dict[int, int]]:
        uuids = [
            sample.domain.uuid for sample in samples if sample.flavor.auto
        ]
        if not uuids or now_s < self._yields_s:
            return {}
        found = {
            uuid: dict(counters)
            for uuid, counters in self._channel.yields(uuids).items()
        }
        if not found:
            # This host's KVM has no such counters.
            self._yields_s = now_s + _COUNTERLESS_S
        return found
