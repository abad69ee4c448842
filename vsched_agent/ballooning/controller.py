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

"""Takes vCPUs from instances that wait for each other, while that pays.

One thread decides, with what the reconciler's thread saw, and others act: a
guest that takes its time delays neither.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import queue
import threading
import time

from oslo_log import log as logging

from vsched_agent.ballooning import acts
from vsched_agent.ballooning import base
from vsched_agent.ballooning import chronicle as chronicles
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import ordered
from vsched_agent.ballooning import steps as steps_of
from vsched_agent.hypervisor import channel as channels
from vsched_lib.contract import balloons
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention

LOG = logging.getLogger(__name__)

Instance = instances.Instance
Outcome = balloon_trial.Outcome

#: Before another question for counters that were not there, in seconds.
_COUNTERLESS_S = 60.0
#: Before another attempt while the agent stops, in seconds.
_AGAIN_S = 0.5
#: Looks that may wait to be dealt with; later ones say the same.
_MOST_WAITING = 3


class Controller:
    """Decides and acts, from threads of its own.

    :param settings: thresholds, times and so on.
    :param channel: the way to the guests; started by whoever made it.
    :param steps: what is done to one instance.
    :param tell: where events go.
    :param cpus: the host's CPUs, those close to each other side by side.
    :param publish: where it is told how instances stand.
    :param clock: seconds that only grow.
    """

    def __init__(self, settings: base.Settings,
                 channel: channels.VcpuChannel, steps: steps_of.Steps,
                 tell: base.Tell, cpus: Callable[[], Sequence[int]],
                 publish: base.Publish,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._channel = channel
        self._steps = steps
        self._cpus = cpus
        self._clock = clock
        self._instances: dict[str, Instance] = {}
        # By an earlier agent's word, of instances not seen yet.
        self._inherited: dict[str, base.Record] = {}
        self._orders: dict[str, balloons.BalloonOrder] = {}
        self._yields_s = 0.0
        self._closing = False
        self.posted: queue.SimpleQueue[Callable[[], None] | None] = (
            queue.SimpleQueue())
        self._idle = threading.Event()
        self._chronicle = chronicles.Chronicle(settings, publish, clock)
        self._acts = acts.Acts(
            settings, channel, steps, tell, self._chronicle, clock,
            self.posted.put, self._decide_now)
        self._ordered = ordered.Ordered(self._acts, self._chronicle)
        self._thread = threading.Thread(
            target=self._run, name='vsched-ballooning', daemon=True)

    # What others may call from their threads

    def recover(self) -> list[base.Record]:
        """Take up what an earlier agent left; before anything else.

        :returns: the balloons in force; each is undone as soon as its
            instance is seen.
        """
        self._inherited = {one.instance_uuid: one
                           for one in self._steps.records()}
        return list(self._inherited.values())

    def start(self) -> None:
        """Begin to decide."""
        self._thread.start()

    def stop(self, patience_s: float) -> None:
        """Give everything back, and end.

        :param patience_s: longest wait for guests; what is not done by
            then, the next agent does.
        """
        if self._thread.is_alive():
            self._closing = True
            give_up_s = time.monotonic() + patience_s
            self.posted.put(self._give_all_back)
            while not self._idle.wait(_AGAIN_S):
                if time.monotonic() >= give_up_s:
                    LOG.warning('not every instance has all of its vCPUs '
                                'yet; the next agent sees to that')
                    break
                # The way to a guest may just be coming back.
                self.posted.put(lambda: self._give_all_back(again=True))
            self.posted.put(None)
            self._thread.join()
        self._acts.close()

    def look(self, samples: Sequence[base.Sample]) -> None:
        """This is what all running instances did in an interval."""
        if self.posted.qsize() < _MOST_WAITING:
            self.posted.put(lambda: self.see(samples))

    def changed(self, uuid: str | None) -> None:
        """An instance may have been started anew."""
        if uuid is not None:
            self.posted.put(lambda: self._suspect(uuid))

    def order(self, orders: Iterable[balloons.BalloonOrder]) -> None:
        """These are all that operators want of this host."""
        found = {one.instance_uuid: one for one in orders}
        self.posted.put(lambda: self._take_orders(found))

    def instances(self) -> list[Instance]:
        """Those that run; to be looked at only."""
        return list(self._instances.values())

    # The thread that decides

    def _run(self) -> None:
        while True:
            item = self.posted.get()
            if item is None:
                return
            try:
                item()
            except Exception:
                LOG.exception('ballooning stumbled')
            if self._closing:
                self._give_all_back()
            self._tell_standings()

    def see(self, samples: Sequence[base.Sample]) -> None:
        """Take in what was seen, and decide; called by the thread."""
        now_s = self._clock()
        self._take_in(samples, now_s)
        for one in list(self._instances.values()):
            if not (one.busy or self._closing):
                self._acts.greet(one, now_s)
                self._acts.read_counter(one, now_s)
        if not self._closing:
            self._decide(now_s)
        self._tell_standings()

    def _tell_standings(self) -> None:
        for one in self._instances.values():
            self._chronicle.look(one)

    def _take_orders(
            self, orders: dict[str, balloons.BalloonOrder]) -> None:
        self._orders = orders
        for one in self._instances.values():
            order = orders.get(one.uuid)
            if one.order != order:
                # What was said of another one is settled.
                one.order, one.refused, one.obey_s = order, None, 0.0
        self._decide_now()

    def _take_in(self, samples: Sequence[base.Sample],
                 now_s: float) -> None:
        counters = self._yields(samples, now_s)
        seen = set()
        for sample in samples:
            uuid = sample.domain.uuid
            seen.add(uuid)
            one = self._instances.get(uuid)
            if one is None or one.domain.pid != sample.domain.pid:
                self._meet(sample, one)
                one = self._instances[uuid]
            one.add(sample, counters.get(uuid), not one.busy and (
                one.standing.settled(now_s, self._settings.pace)))
        for uuid in self._instances.keys() - seen:
            self._lose(self._instances.pop(uuid))
        for uuid in self._inherited.keys() - seen:
            self._over(self._inherited.pop(uuid))

    def _meet(self, sample: base.Sample, before: Instance | None) -> None:
        if before is not None:
            self._lose(before)
        uuid = sample.domain.uuid
        one = Instance(sample, self._settings.thresholds)
        self._instances[uuid] = one
        record = self._inherited.pop(uuid, None)
        if record is not None and record.pid == sample.domain.pid:
            one.record = record
            one.leave = 'the agent was started anew'
        elif record is not None:
            self._over(record)
        one.order = self._orders.get(uuid)

    def _lose(self, one: Instance) -> None:
        self._chronicle.forget(one.uuid)
        if one.record is not None:
            self._over(one.record)
        elif one.busy:
            self._steps.forget(one.uuid)

    def _over(self, record: base.Record) -> None:
        self._chronicle.ended(
            record, Outcome.UNDONE, 'the instance does not run any more')
        self._steps.forget(record.instance_uuid)

    def _yields(self, samples: Sequence[base.Sample], now_s: float,
                ) -> dict[str, dict[int, int]]:
        asked = [sample.domain.uuid for sample in samples
                 if sample.wishes.auto]
        if not asked or now_s < self._yields_s:
            return {}
        found = {uuid: dict(counters) for uuid, counters in
                 self._channel.yields(asked).items()}
        if not found:
            # Not a host whose KVM tells.
            self._yields_s = now_s + _COUNTERLESS_S
        return found

    def _suspect(self, uuid: str) -> None:
        one = self._instances.get(uuid)
        if one is not None:
            self._acts.suspect(one)

    def _give_all_back(self, again: bool = False) -> None:
        """Have every instance get its vCPUs back.

        :param again: those as well where this failed.
        """
        for one in self._instances.values():
            if (one.record is not None and not one.busy and
                    (again or one.retry_s is None)):
                self._acts.give_back(
                    one, 'the agent stops', Outcome.UNDONE)
        if not any(one.busy or one.record is not None
                   for one in self._instances.values()):
            self._idle.set()

    # All of them together

    def _decide_now(self) -> None:
        if not self._closing:
            self._decide(self._clock())

    def _decide(self, now_s: float) -> None:
        ready = {one.uuid for one in self._instances.values()
                 if self._ready(one, now_s)}
        active = [one for one in self._instances.values()
                  if self._active(one)]
        parts = balloon.divide(
            [one.share(one.uuid in ready or one.target_vcpus is not None)
             for one in active], self._cpus())
        triggered = any(
            self._contended(one, active) for one in active
            if one.uuid in ready)
        for one in list(self._instances.values()):
            if one.busy:
                continue
            part = parts.get(one.uuid)
            if one.record is not None and self._leaves(one, now_s):
                continue
            if one.order is not None and (
                    one.order.target_vcpus is not None):
                self._ordered.obey(one, part, now_s)
            elif one.frozen:
                continue
            elif one.record is not None:
                self._watch(one, part, triggered, now_s)
            elif triggered and part is not None and (
                    part.vcpus < one.vcpus):
                # One reading of a counter is no rate to compare with yet.
                if one.counts(now_s):
                    self._acts.hasten(one, now_s)
                else:
                    self._acts.shrink(one, part, now_s)

    def _ready(self, one: Instance, now_s: float) -> bool:
        free = one.order is None or not (
            one.frozen or one.order.target_vcpus is not None)
        return free and one.wishes.auto and one.vcpus > 1 and (
            not one.pinned) and (
            one.record is not None or
            one.met and one.standing.may_shrink(now_s))

    def _active(self, one: Instance) -> bool:
        if one.record is not None and not one.window.full:
            # Nobody knows yet; it was busy when its balloon was made.
            return True
        return one.window.full and one.window.work().runnable >= (
            self._settings.active_cpus)

    def _contended(self, one: Instance, active: Sequence[Instance]) -> bool:
        if not contention.contended(
                one.window, self._settings.thresholds):
            return False
        host = frozenset(self._cpus())
        room = host if one.cpus is None else one.cpus & host
        # Those that can not go elsewhere.
        return contention.overcommitted(
            (other.window.work() for other in active
             if (host if other.cpus is None else other.cpus) <= room),
            len(room))

    def _leaves(self, one: Instance, now_s: float) -> bool:
        """Whether it has to have all of its vCPUs back; then it gets them.
        """
        record = one.record
        assert record is not None
        if one.retry_s is not None and now_s < one.retry_s:
            return True
        if one.leave is None and one.strayed:
            one.leave = 'its guest uses vCPUs that were taken'
        elif one.leave is None and not one.wishes.auto:
            one.leave = 'its flavor does not allow it any more'
        elif one.leave is None and one.altered:
            one.leave = 'it has got other vCPUs'
        elif one.leave is None and record.manual and not one.frozen and (
                one.order is None or one.order.target_vcpus is None):
            one.leave = 'what an operator ordered was withdrawn'
        if one.leave is not None:
            self._acts.give_back(one, one.leave, one.outcome)
        return one.leave is not None

    def _watch(self, one: Instance, part: balloon.Part | None,
               triggered: bool, now_s: float) -> None:
        pace = self._settings.pace
        if one.standing.phase is balloon_trial.Phase.TRIAL:
            if one.standing.due(now_s, pace):
                self._judge(one, now_s)
        else:
            one.standing = one.standing.watched(
                now_s, part is None or part.vcpus > one.online)
            if part is not None and triggered and (
                    part.vcpus < one.online and
                    one.standing.may_shrink(now_s)):
                self._acts.shrink(one, part, now_s)
            elif part is not None and self._acts.misplaced(one, part) and (
                    one.standing.may_shrink(now_s)):
                self._acts.shrink(one, part, now_s)
            elif one.standing.may_grow(now_s, pace):
                if part is None or part.vcpus >= one.vcpus:
                    self._acts.give_back(
                        one, 'the CPUs are not short any more', Outcome.CALM)
                else:
                    self._acts.shrink(one, part, now_s)

    def _judge(self, one: Instance, now_s: float) -> None:
        before = one.standing.before
        assert before is not None
        verdict = balloon_trial.judge(
            before, one.work(one.since, one.standing.since_s +
                             self._settings.pace.settle_s),
            self._settings.bar)
        if not verdict.pays:
            self._acts.give_back(one, verdict.reason, Outcome.REVERTED)
            return
        self._acts.kept(one, verdict.reason, now_s)
