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

"""What is done to one instance, in threads that may wait for its guest.

Each act marks its instance as busy and begins; what came of it is put down
by the thread that decides, so that only one thread ever changes anything.
"""

from collections.abc import Callable
import concurrent.futures
import dataclasses
import math
import threading
import time

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.ballooning import chronicle as chronicles
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import steps as steps_of
from vsched_agent.hypervisor import channel as channels
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention

LOG = logging.getLogger(__name__)

Instance = instances.Instance
Outcome = balloon_trial.Outcome

#: Guests that are worked on at the same time.
_HANDS = 8
#: Before another attempt to give vCPUs back, in seconds.
RETRY_S = 3.0
#: The same for a guest that has never answered, at most.
_RETRY_MAX_S = 300.0
#: A guest that does not answer so often does not merely boot: more than half
#: of a minute.
_PATIENT_GREETINGS = 8
#: Between two readings of a progress counter, in seconds.
_COUNTER_S = 0.9
#: Before another look for a counter that was not there, in seconds.
_COUNTERLESS_S = 10.0


class Acts:
    """Acts on instances; every method returns at once.

    :param settings: thresholds, times and so on.
    :param channel: the way to the guests.
    :param steps: what is done to one instance.
    :param tell: where events go.
    :param chronicle: where balloons are told of.
    :param clock: seconds that only grow.
    :param post: has the thread that decides call something.
    :param decide: decides with what is known; called by that thread.
    """

    def __init__(self, settings: base.Settings,
                 channel: channels.VcpuChannel, steps: steps_of.Steps,
                 tell: base.Tell, chronicle: chronicles.Chronicle,
                 clock: Callable[[], float],
                 post: Callable[[Callable[[], None]], None],
                 decide: Callable[[], None]) -> None:
        self._settings = settings
        self._channel = channel
        self._steps = steps
        self._tell = tell
        self._chronicle = chronicle
        self._clock = clock
        self._post = post
        self._decide = decide
        self._pool = concurrent.futures.ThreadPoolExecutor(
            _HANDS, 'vsched-balloon')

    def close(self) -> None:
        """Nothing begins any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def suspect(self, one: Instance) -> None:
        """Ask its guest whether it uses what it was left with."""
        if one.record is None or one.busy:
            return
        record, uuid = one.record, one.uuid

        def ask() -> None:
            try:
                strayed = self._steps.strayed(record)
            except channels.ChannelFailed as failure:
                LOG.debug('instance %s: %s', uuid, failure)
                self._post(lambda: self._doubted(one, record))
                return
            self._post(lambda: self._strayed(one, record, strayed))

        self._pool.submit(ask)

    def _doubted(self, one: Instance, record: base.Record) -> None:
        # It boots, most likely, and nobody can say what it will use.
        if one.record is record and one.leave is None:
            one.leave = 'it changed, and its guest does not answer'

    def _strayed(self, one: Instance, record: base.Record,
                 strayed: bool) -> None:
        if strayed and one.record is record and not one.busy:
            one.strayed = True
            self.give_back(one, 'its guest uses other vCPUs',
                            Outcome.UNDONE)

    def greet(self, one: Instance, now_s: float) -> None:
        """Nobody knows what a guest uses that came from elsewhere."""
        if (one.met or one.record is not None or not one.wishes.auto or
                now_s < (one.retry_s or now_s)):
            return
        one.busy = True

        def heal() -> None:
            met: steps_of.Met | None = None
            try:
                met = self._steps.heal(
                    one.domain, self._settings.unplug and
                    one.greetings >= _PATIENT_GREETINGS)
            except channels.ChannelFailed as failure:
                LOG.debug('%s: %s', one.domain.name, failure)
            self._post(lambda: self._met(one, met))

        self._pool.submit(heal)

    def _met(self, one: Instance, met: steps_of.Met | None) -> None:
        one.busy = False
        one.met = met is not None
        one.unplug = met is not None and met.unplug
        offline = met.offline if met is not None else None
        one.greetings += 1
        if one.met:
            one.obey_s = 0.0
        # It boots, or has no agent at all, or nobody got to it yet.
        one.retry_s = None if one.met else self._clock() + min(
            _RETRY_MAX_S,
            min(RETRY_S, one.greetings) * 2 ** (one.greetings // 4))
        if offline:
            self.say(one, errors.Code.BALLOON_RETURNED,
                 messages.Severity.INFO,
                      'it came without vCPUs %s; it has them again' % (
                          sorted(offline)), Outcome.UNDONE)

    def read_counter(self, one: Instance, now_s: float) -> None:
        """Ask how far it got, by its own word."""
        path = self._settings.progress_path
        if not (path and one.wishes.auto and one.met) or (
                now_s < one.counter_s):
            return
        # Of one that idles nobody wants to know.
        if one.record is None and (
                one.window.work().runnable < self._settings.active_cpus):
            return
        # Not again before this one has come.
        one.counter_s = math.inf
        uuid = one.uuid

        def read() -> None:
            value = None
            try:
                value = self._channel.progress(
                    uuid, path, self._settings.guest_timeout_s)
            except channels.ChannelFailed as failure:
                LOG.debug('instance %s: %s', uuid, failure)
            at_s = self._clock()
            self._post(lambda: self._counted(one, at_s, value))

        self._pool.submit(read)

    def hasten(self, one: Instance, now_s: float) -> None:
        """Read its counter as soon as that makes sense, and decide then.

        Else it would wait for the next look with everything known.
        """
        if one.eager:
            return
        one.eager = True
        if not math.isinf(one.counter_s):
            timer = threading.Timer(
                max(0.0, one.counter_s - now_s), self._post,
                [lambda: self.read_counter(one, self._clock())])
            timer.daemon = True
            timer.start()

    def _counted(self, one: Instance, at_s: float,
                 value: int | None) -> None:
        if value is None:
            one.counter.clear()
            one.counter_s = at_s + _COUNTERLESS_S
        else:
            one.counter_s = at_s + _COUNTER_S
            one.counter.append((at_s, value))
        if one.eager:
            one.eager = False
            self._decide()

    def misplaced(self, one: Instance, part: balloon.Part) -> bool:
        """Whether it should be bound to other CPUs than it is."""
        record = one.record
        return (self._settings.bind and one.bindable and
                record is not None and part.vcpus == one.online and
                bool(part.cpus) and
                set(part.cpus) != set(record.pins.values()))

    def refuse(self, one: Instance, refused: errors.Refused) -> None:
        """What an operator ordered is not done, for the time being."""
        before, one.refused = one.refused, refused
        if before is None or before.code != refused.code:
            self.say(one, errors.Code.BALLOON_REFUSED,
                     messages.Severity.WARNING, refused.detail, None,
                     {**refused.figures, 'cause': str(refused.code)})

    def shrink(self, one: Instance, part: balloon.Part, now_s: float,
               manual: bool = False) -> None:
        """Leave it with its part, or say that it would be.

        :param manual: whether an operator ordered that.
        """
        pace = self._settings.pace
        work = one.work(one.window, one.seen_since_s(now_s))
        online = balloon.kept_online(one.indexes, part.vcpus)
        cause = ('it gets CPUs of its own' if part.vcpus == one.online
                 else 'others need more CPUs, or fewer')
        if manual:
            cause = 'an operator ordered %d vCPUs' % part.vcpus
        elif one.record is None:
            cause = ('its vCPUs waited %d %% of the time that they could '
                     'run' % (100 * work.wait_share))
        if self._settings.dry_run:
            one.standing = one.standing.full(now_s, Outcome.CALM, pace)
            self.say(one, errors.Code.BALLOON_PROPOSED,
                 messages.Severity.INFO,
                      'it would be left with %d of %d vCPUs: %s' % (
                          part.vcpus, one.vcpus, cause), None)
            self._chronicle.nothing(one, chronicles.Wanted(
                part.vcpus, cause, manual), Outcome.PROPOSED)
            return
        keep = steps_of.Keep(online, dict(zip(
            sorted(online), part.cpus, strict=False)), cause, manual,
            one.unplug)
        previous, domain = one.record, one.domain
        one.busy = True

        def act() -> None:
            try:
                taken = self._steps.shrink(domain, keep, previous)
            except steps_of.StepFailed as failure:
                error = failure
                self._post(lambda: self._not_shrunk(one, keep, error))
            except Exception as failure:
                LOG.exception('%s', domain.name)
                other = steps_of.StepFailed(repr(failure), True)
                self._post(lambda: self._not_shrunk(one, keep, other))
            else:
                self._post(lambda: self._shrunk(one, work, taken))

        self._pool.submit(act)

    def _shrunk(self, one: Instance, before: contention.Work,
                taken: steps_of.Taken) -> None:
        now_s, previous, before_vcpus = (
            self._clock(), one.record, one.online)
        if previous is not None:
            self._chronicle.ended(
                previous, Outcome.CHANGED, taken.record.cause)
        one.busy, one.record = False, self._chronicle.taken(
            one, taken.record, before_vcpus, taken.offline_s)
        one.begin()
        one.bindable = not taken.unbindable
        one.standing = one.standing.shrunk(
            now_s, before, self._settings.pace)
        if previous is not None or taken.record.manual:
            # What it was worth is known, or nobody asks.
            one.standing = one.standing.kept(now_s)
        if previous is not None and not taken.record.manual:
            one.record = self._chronicle.kept(
                one.record, taken.record.cause)
        self._steps.note(one.record)
        self.say(one, errors.Code.BALLOON_TAKEN,
                 messages.Severity.INFO,
                  'it is left with %d of %d vCPUs: %s' % (
                      one.online, one.vcpus, taken.record.cause), None,
                  {'offline_s': round(taken.offline_s, 3),
                   'cpus': sorted(taken.record.pins.values())})

    def kept(self, one: Instance, reason: str, now_s: float) -> None:
        """Its balloon pays."""
        assert one.record is not None
        one.standing = one.standing.kept(now_s)
        one.record = self._chronicle.kept(one.record, reason)
        self._steps.note(one.record)
        self.say(one, errors.Code.BALLOON_KEPT, messages.Severity.INFO,
                 'it keeps %d of %d vCPUs: %s' % (
                     one.online, one.vcpus, reason), Outcome.KEPT)

    def _not_shrunk(self, one: Instance, keep: steps_of.Keep,
                    failure: steps_of.StepFailed) -> None:
        one.busy = False
        now_s = self._clock()
        if one.record is not None:
            self._chronicle.ended(one.record, Outcome.FAILED, str(failure))
        told = self._chronicle.nothing(
            one, chronicles.Wanted(len(keep.online), keep.cause,
                                   keep.manual),
            Outcome.FAILED, str(failure))
        one.begin()
        one.standing = one.standing.full(
            now_s, Outcome.FAILED, self._settings.pace)
        one.record = None
        self.say(one, errors.Code.BALLOON_FAILED,
                 messages.Severity.WARNING,
                  'vCPUs can not be taken: %s' % failure, Outcome.FAILED)
        one.obey_s = one.standing.not_before_s
        if failure.code is errors.Code.BALLOON_GUEST_MUTE:
            # It is asked again until it answers.
            one.met, one.greetings = False, 1
            one.retry_s = now_s + RETRY_S
        if keep.manual:
            self.refuse(one, errors.Refused(
                'it can not be left with %d vCPUs: %s' % (
                    len(keep.online), failure), failure.code))
        if failure.stuck:
            one.record = next((
                dataclasses.replace(record, change=told)
                for record in self._steps.records()
                if record.instance_uuid == one.uuid), None)
            one.leave, one.outcome = str(failure), Outcome.FAILED
            one.retry_s = now_s + RETRY_S

    def give_back(self, one: Instance, cause: str,
                  outcome: Outcome) -> None:
        """Let it have all of its vCPUs again."""
        record, strayed = one.record, one.strayed
        assert record is not None
        one.busy, one.leave, one.outcome = True, cause, outcome

        def act() -> None:
            failure: str | None = None
            try:
                self._steps.grow(record, strayed)
            except steps_of.StepFailed as error:
                failure = str(error)
            except Exception as error:
                LOG.exception('%s', one.domain.name)
                failure = repr(error)
            self._post(lambda: self._given_back(one, failure))

        self._pool.submit(act)

    def _given_back(self, one: Instance, failure: str | None) -> None:
        one.busy = False
        now_s = self._clock()
        if failure is not None:
            if one.retry_s is None:
                self.say(one, errors.Code.BALLOON_FAILED,
                 messages.Severity.WARNING,
                          'vCPUs can not be given back yet: %s' % failure,
                          None)
            one.retry_s = now_s + RETRY_S
            return
        outcome, cause = one.outcome, one.leave
        since = one.record.at if one.record else time.time()
        if one.record is not None:
            self._chronicle.ended(one.record, outcome, str(cause))
        one.record = one.retry_s = one.leave = None
        one.outcome, one.strayed, one.met = Outcome.UNDONE, False, True
        one.begin()
        one.standing = one.standing.full(
            now_s, outcome, self._settings.pace)
        one.obey_s = one.standing.not_before_s
        self.say(one, errors.Code.BALLOON_RETURNED,
                 messages.Severity.INFO,
                  'it has all %d vCPUs again: %s' % (one.vcpus, cause),
                  outcome, {'duration_s': round(time.time() - since, 1)})

    def say(self, one: Instance, code: errors.Code,
             severity: messages.Severity, detail: str,
             outcome: Outcome | None,
             figures: dict[str, object] | None = None) -> None:
        """Tell what happened to it."""
        self._tell(code, severity, '%s: %s' % (one.domain.name, detail),
                   one.uuid, {
                       'vcpus': one.online, 'configured': one.vcpus,
                       **({'outcome': str(outcome)} if outcome else {}),
                       **(figures or {})})
