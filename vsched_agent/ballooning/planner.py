# SPDX-License-Identifier: Apache-2.0

"""Take vCPUs from contending instances while that is beneficial.

One thread decides, from the reconciler thread's samples, and others act: a
slow guest delays neither.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import functools
import queue
import threading
import time

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.ballooning import executor
from vsched_agent.ballooning import history as chronicles
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import orders as ordered
from vsched_agent.ballooning import transaction as steps_of
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_agent import problem_log
from vsched_lib.contract import balloons
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention

LOG = logging.getLogger(__name__)

Instance = instances.Instance
Outcome = balloon_trial.Outcome

#: Seconds until another read of counters that did not exist.
_COUNTERLESS_S = 60.0
#: Seconds between attempts while the agent stops.
_AGAIN_S = 0.5
#: Most queued samples; further ones are dropped.
_MOST_WAITING = 3


class Controller:
    """Decides and acts, in threads of its own.

    :param settings: thresholds, times and so on.
    :param channel: the channel to the guests; started by the caller.
    :param steps: transactions on one instance.
    :param tell: emits events.
    :param cpus: the host's CPUs in topological order.
    :param publish: reports instances' states.
    :param clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: base.Settings,
        channel: channels.VcpuChannel,
        steps: steps_of.Steps,
        tell: base.Tell,
        cpus: Callable[[], Sequence[int]],
        publish: base.Publish,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._channel = channel
        self._steps = steps
        self._cpus = cpus
        self._problems = problem_log.ProblemLog(LOG)
        self._clock = clock
        self._instances: dict[str, Instance] = {}
        # Records of an earlier agent, of instances not seen yet.
        self._inherited: dict[str, base.Record] = {}
        self._orders: dict[str, balloons.BalloonOrder] = {}
        # Running instances without a reliable record.
        self._orphans: frozenset[str] = frozenset()
        self._yields_s = 0.0
        self._closing = False
        self.posted: queue.SimpleQueue[Callable[[], None] | None] = (
            queue.SimpleQueue()
        )
        self._idle = threading.Event()
        self._chronicle = chronicles.Chronicle(settings, publish, clock)
        self._acts = executor.Acts(
            settings,
            channel,
            steps,
            tell,
            self._chronicle,
            clock,
            self.posted.put,
            self._decide_now,
        )
        self._ordered = ordered.Ordered(self._acts, self._chronicle)
        self._thread = threading.Thread(
            target=self._run, name='vsched-ballooning', daemon=True
        )

    # Called from other threads

    def recover(self) -> list[base.Record]:
        """Load an earlier agent's records; call it first.

        :returns: the balloons in force; each is undone as soon as its
            instance is seen.
        """
        self._inherited = {
            one.instance_uuid: one for one in self._steps.records()
        }
        return list(self._inherited.values())

    def start(self) -> None:
        """Start the planner's thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Give all vCPUs back, and end.

        :param timeout_s: longest wait for guests; the next agent does the
            rest.
        """
        if self._thread.is_alive():
            self._closing = True
            give_up_s = time.monotonic() + timeout_s
            self.posted.put(self._give_all_back)
            while not self._idle.wait(_AGAIN_S):
                if time.monotonic() >= give_up_s:
                    LOG.warning(
                        'not every instance has all of its vCPUs '
                        'yet; the next agent gives them back'
                    )
                    break
                # The channel to a guest may have recovered.
                self.posted.put(lambda: self._give_all_back(again=True))
            self.posted.put(None)
            self._thread.join()
        self._acts.close()

    def add_samples(self, samples: Sequence[base.Sample]) -> None:
        """Add the samples of all running instances."""
        if self.posted.qsize() < _MOST_WAITING:
            self.posted.put(lambda: self.see(samples))

    def changed(self, uuid: str | None) -> None:
        """Check an instance that may have been restarted."""
        if uuid is not None:
            self.posted.put(lambda: self._check_guest(uuid))

    def records_lost(self, uuids: frozenset[str]) -> None:
        """Handle the loss of records: instances may lack vCPUs.

        :param uuids: of the instances that run.
        """
        self.posted.put(lambda: self._search(uuids))

    def order(self, orders: Iterable[balloons.BalloonOrder]) -> None:
        """Set all of the operators' requests for this host."""
        found = {one.instance_uuid: one for one in orders}
        self.posted.put(lambda: self._take_orders(found))

    def instances(self) -> list[Instance]:
        """Return the running instances; read-only."""
        return list(self._instances.values())

    # The planner's thread

    def _run(self) -> None:
        while True:
            item = self.posted.get()
            if item is None:
                return
            try:
                item()
            except Exception as error:
                self._problems.failed('all', error, 'ballooning failed')
            if self._closing:
                self._give_all_back()
            self._publish_states()

    def _each(self, step: Callable[[Instance], None]) -> None:
        """Call a function for each instance; log failures."""
        for one in list(self._instances.values()):
            try:
                step(one)
            except Exception as error:
                self._problems.failed(
                    one.uuid, error, '%s: ballooning failed', one.domain.name
                )

    def see(self, samples: Sequence[base.Sample]) -> None:
        """Process samples, and decide; called by the thread."""
        now_s = self._clock()
        self._take_in(samples, now_s)
        self._each(lambda one: self._ask(one, now_s))
        if not self._closing:
            self._decide(now_s)
        self._publish_states()

    def _ask(self, one: Instance, now_s: float) -> None:
        if not (one.busy or self._closing):
            self._acts.probe_guest(one, now_s)
            self._acts.read_counter(one, now_s)

    def _publish_states(self) -> None:
        self._each(self._chronicle.publish_state)

    def _search(self, uuids: frozenset[str]) -> None:
        self._orphans = uuids
        self._each(self._search_one)

    def _search_one(self, one: Instance) -> None:
        if one.record is not None:
            self._steps.note(one.record)
        elif one.uuid in self._orphans and not one.busy:
            one.orphan, one.reachable, one.probes = True, False, 0
            one.retry_s = None

    def _take_orders(self, orders: dict[str, balloons.BalloonOrder]) -> None:
        self._orders = orders
        for one in self._instances.values():
            order = orders.get(one.uuid)
            if one.order != order:
                # A refusal of the former request is obsolete.
                one.order, one.refused, one.order_retry_s = order, None, 0.0
        self._decide_now()

    def _take_in(self, samples: Sequence[base.Sample], now_s: float) -> None:
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
                functools.partial(
                    self._remove_instance, self._instances.pop(uuid)
                ),
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
            not one.busy and (one.status.settled(now_s, self._settings.pace)),
        )

    def _add_instance(
        self, sample: base.Sample, before: Instance | None
    ) -> None:
        if before is not None:
            self._remove_instance(before)
        uuid = sample.domain.uuid
        one = Instance(sample, self._settings.thresholds)
        self._instances[uuid] = one
        record = self._inherited.pop(uuid, None)
        if record is not None and record.pid == sample.domain.pid:
            one.record = record
            one.leave = 'the agent was started anew'
        elif record is not None:
            self._close_record(record)
        else:
            one.orphan = before is None and uuid in self._orphans
        one.order = self._orders.get(uuid)

    def _remove_instance(self, one: Instance) -> None:
        self._chronicle.forget(one.uuid)
        if one.record is not None:
            self._close_record(one.record)
        elif one.busy:
            self._steps.forget(one.uuid)

    def _close_record(self, record: base.Record) -> None:
        self._chronicle.ended(
            record, Outcome.UNDONE, 'the instance does not run any more'
        )
        self._steps.forget(record.instance_uuid)

    def _yields(
        self, samples: Sequence[base.Sample], now_s: float
    ) -> dict[str, dict[int, int]]:
        asked = [
            sample.domain.uuid for sample in samples if sample.wishes.auto
        ]
        if not asked or now_s < self._yields_s:
            return {}
        found = {
            uuid: dict(counters)
            for uuid, counters in self._channel.yields(asked).items()
        }
        if not found:
            # This host's KVM has no such counters.
            self._yields_s = now_s + _COUNTERLESS_S
        return found

    def _check_guest(self, uuid: str) -> None:
        one = self._instances.get(uuid)
        if one is not None:
            self._acts.check_guest(one)

    def _give_all_back(self, again: bool = False) -> None:
        """Give vCPUs back to every instance.

        :param again: including those where this failed.
        """

        def give_back(one: Instance) -> None:
            if (
                one.record is not None
                and not one.busy
                and (again or one.retry_s is None)
            ):
                self._acts.give_back(one, 'the agent stops', Outcome.UNDONE)

        self._each(give_back)
        if not any(
            one.busy or one.record is not None
            for one in self._instances.values()
        ):
            self._idle.set()

    # All of them together

    def _decide_now(self) -> None:
        if not self._closing:
            self._decide(self._clock())

    def _decide(self, now_s: float) -> None:
        ready = {
            one.uuid
            for one in self._instances.values()
            if self._ready(one, now_s)
        }
        active = [one for one in self._instances.values() if self._active(one)]
        parts = balloon.divide(
            [
                one.share(one.uuid in ready or one.target_vcpus is not None)
                for one in active
            ],
            self._cpus(),
        )
        triggered = any(
            self._contended(one, active) for one in active if one.uuid in ready
        )
        self._each(
            lambda one: self._decide_one(
                one, parts.get(one.uuid), triggered, now_s
            )
        )

    def _decide_one(
        self,
        one: Instance,
        part: balloon.Part | None,
        triggered: bool,
        now_s: float,
    ) -> None:
        if (
            one.busy
            or one.record is not None
            and self._must_return(one, now_s)
        ):
            return
        if one.order is not None and one.order.target_vcpus is not None:
            self._ordered.apply_target(one, part, now_s)
        elif one.frozen:
            return
        elif one.record is not None:
            self._watch(one, part, triggered, now_s)
        elif triggered and part is not None and part.vcpus < one.vcpus:
            # A rate for comparison needs two readings of the counter.
            if one.counts(now_s):
                self._acts.read_counter_soon(one, now_s)
            else:
                self._acts.shrink(one, part, now_s)

    def _ready(self, one: Instance, now_s: float) -> bool:
        free = one.order is None or not (
            one.frozen or one.order.target_vcpus is not None
        )
        return (
            free
            and one.wishes.auto
            and one.vcpus > 1
            and (not one.pinned)
            and (
                one.record is not None
                or one.reachable
                and one.status.may_shrink(now_s)
            )
        )

    def _active(self, one: Instance) -> bool:
        if one.record is not None and not one.window.full:
            # Not known yet; it was busy when its balloon was made.
            return True
        return one.window.full and one.window.work().runnable >= (
            self._settings.active_cpus
        )

    def _contended(self, one: Instance, active: Sequence[Instance]) -> bool:
        if not contention.contended(one.window, self._settings.thresholds):
            return False
        host = frozenset(self._cpus())
        room = host if one.cpus is None else one.cpus & host
        # Those that cannot run elsewhere.
        return contention.overcommitted(
            (
                other.window.work()
                for other in active
                if (host if other.cpus is None else other.cpus) <= room
            ),
            len(room),
        )

    def _must_return(self, one: Instance, now_s: float) -> bool:
        """Give all of its vCPUs back if required; return whether it was."""
        record = one.record
        assert record is not None
        if one.retry_s is not None and now_s < one.retry_s:
            return True
        if one.leave is None and one.unexpected_online:
            one.leave = 'its guest uses vCPUs that were taken'
        elif one.leave is None and not one.wishes.auto:
            one.leave = 'its flavor does not allow it any more'
        elif one.leave is None and one.altered:
            one.leave = 'it has got other vCPUs'
        elif (
            one.leave is None
            and record.manual
            and not one.frozen
            and (one.order is None or one.order.target_vcpus is None)
        ):
            one.leave = 'what an operator ordered was withdrawn'
        if one.leave is not None:
            self._acts.give_back(one, one.leave, one.outcome)
        return one.leave is not None

    def _watch(
        self,
        one: Instance,
        part: balloon.Part | None,
        triggered: bool,
        now_s: float,
    ) -> None:
        pace = self._settings.pace
        if one.status.phase is balloon_trial.Phase.TRIAL:
            if one.status.due(now_s, pace):
                self._judge(one, now_s)
        else:
            one.status = one.status.watched(
                now_s, part is None or part.vcpus > one.online
            )
            if (
                part is not None
                and triggered
                and (part.vcpus < one.online and one.status.may_shrink(now_s))
            ):
                self._acts.shrink(one, part, now_s)
            elif (
                part is not None
                and self._acts.misplaced(one, part)
                and (one.status.may_shrink(now_s))
            ):
                self._acts.shrink(one, part, now_s)
            elif one.status.may_grow(now_s, pace):
                if part is None or part.vcpus >= one.vcpus:
                    self._acts.give_back(
                        one, 'the CPUs are not short any more', Outcome.CALM
                    )
                else:
                    self._acts.shrink(one, part, now_s)

    def _judge(self, one: Instance, now_s: float) -> None:
        before = one.status.before
        assert before is not None
        verdict = balloon_trial.judge(
            before,
            one.work(
                one.since, one.status.since_s + self._settings.pace.settle_s
            ),
            self._settings.bar,
            one.online,
        )
        if verdict.decision is balloon_trial.Decision.LOSES:
            self._acts.give_back(one, verdict.reason, Outcome.REVERTED)
        elif verdict.decision is balloon_trial.Decision.UNKNOWN and not (
            self._settings.keep_unknown
        ):
            self._acts.give_back(one, verdict.reason, Outcome.UNKNOWN)
        else:
            self._acts.kept(one, verdict.reason, now_s)
