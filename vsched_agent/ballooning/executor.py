# SPDX-License-Identifier: Apache-2.0

"""Run actions on instances in threads that may wait for guests.

Each action marks its instance as busy; its result is recorded by the planner's
thread, so that only one thread changes state.
"""

from collections.abc import Callable
import concurrent.futures
import dataclasses
import functools
import math
import threading
import time

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.ballooning import history as chronicles
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import transaction as steps_of
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_agent import problem_log
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention

LOG = logging.getLogger(__name__)

Instance = instances.Instance
Outcome = balloon_trial.Outcome
#: Records an action's result; called by the planner's thread.
Step = Callable[[], None]

#: Concurrent actions on guests.
_WORKERS = 8
#: Seconds until another attempt to give vCPUs back.
RETRY_S = 3.0
#: The longest such wait for a guest that has never answered.
_RETRY_MAX_S = 300.0
#: A guest that does not answer so often does not merely boot: more than half
#: of a minute.
_BOOT_PROBES = 8
#: Seconds between two reads of a progress counter.
_COUNTER_S = 0.9
#: Seconds until another read of a counter that did not exist.
_COUNTERLESS_S = 10.0


class Acts:
    """Starts actions on instances; every method returns at once.

    :param settings: thresholds, times and so on.
    :param channel: the channel to the guests.
    :param steps: transactions on one instance.
    :param tell: emits events.
    :param chronicle: reports balloons.
    :param clock: monotonic seconds.
    :param post: queues a call for the planner's thread.
    :param decide: makes decisions; called by that thread.
    """

    def __init__(
        self,
        settings: base.Settings,
        channel: channels.VcpuChannel,
        steps: steps_of.Steps,
        tell: base.Tell,
        chronicle: chronicles.Chronicle,
        clock: Callable[[], float],
        post: Callable[[Callable[[], None]], None],
        decide: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._channel = channel
        self._steps = steps
        self._tell = tell
        self._chronicle = chronicle
        self._clock = clock
        self._post = post
        self._decide = decide
        self._problems = problem_log.ProblemLog(LOG)
        self._pool = concurrent.futures.ThreadPoolExecutor(
            _WORKERS, 'vsched-balloon'
        )

    def close(self) -> None:
        """Start no more actions."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _submit(
        self,
        one: Instance,
        work: Callable[[], Step],
        failed: Callable[[Exception], None],
        busy: bool = True,
    ) -> None:
        """Run something that may wait for the guest in a thread.

        :param work: returns the call that records its result.
        :param failed: called by the planner's thread with other errors.
        :param busy: the instance was marked as busy; the recording call
            clears the mark.
        """

        def run() -> None:
            try:
                step = work()
            except Exception as error:
                self._problems.failed(
                    one.uuid, error, '%s: ballooning failed', one.domain.name
                )
                step = functools.partial(failed, error)
            self._post(functools.partial(self._finish, one, step, busy))

        try:
            self._pool.submit(run)
        except RuntimeError as error:
            # The pool is shut down.
            self._post(
                functools.partial(
                    self._finish, one, functools.partial(failed, error), busy
                )
            )

    def _finish(self, one: Instance, step: Step, busy: bool) -> None:
        """Record an action's result."""
        try:
            step()
        except Exception as error:
            self._problems.failed(
                one.uuid,
                error,
                '%s: the result of ballooning could not be recorded',
                one.domain.name,
            )
            if busy:
                one.busy = False
                self._recall(one)

    def _recall(self, one: Instance) -> None:
        """Undo what the journal has recorded of an instance."""
        one.retry_s = self._clock() + RETRY_S
        found = [
            record
            for record in self._steps.records()
            if record.instance_uuid == one.uuid
        ]
        if found:
            (one.record,) = found
        if one.record is not None and one.leave is None:
            one.leave, one.outcome = 'ballooning failed', Outcome.FAILED

    def check_guest(self, one: Instance) -> None:
        """Check whether the guest uses only its remaining vCPUs."""
        if one.record is None or one.busy:
            return
        record, uuid = one.record, one.uuid

        def ask() -> Step:
            try:
                unexpected_online = self._steps.unexpected_online(record)
            except channels.ChannelFailed as failure:
                LOG.debug('instance %s: %s', uuid, failure)
                return lambda: self._guest_silent(one, record)
            return lambda: self._unexpected_online(
                one, record, unexpected_online
            )

        self._submit(
            one, ask, lambda error: self._guest_silent(one, record), False
        )

    def _guest_silent(self, one: Instance, record: base.Record) -> None:
        # It probably boots, and its vCPUs are unknown.
        if one.record is record and one.leave is None:
            one.leave = 'it changed, and its guest does not answer'

    def _unexpected_online(
        self, one: Instance, record: base.Record, unexpected_online: bool
    ) -> None:
        if unexpected_online and one.record is record and not one.busy:
            one.unexpected_online = True
            self.give_back(one, 'its guest uses other vCPUs', Outcome.UNDONE)

    def probe_guest(self, one: Instance, now_s: float) -> None:
        """Ask a new guest for its vCPUs and take all online."""
        wanted = one.wishes.auto or (one.orphan and one.probes < _BOOT_PROBES)
        if (
            one.reachable
            or one.record is not None
            or not wanted
            or now_s < (one.retry_s or now_s)
        ):
            return
        one.busy = True

        def bring_all_online() -> Step:
            offline: frozenset[int] | None = None
            try:
                offline = self._steps.bring_all_online(one.domain)
            except channels.ChannelFailed as failure:
                LOG.debug('%s: %s', one.domain.name, failure)
            return lambda: self._guest_answered(one, offline)

        self._submit(
            one,
            bring_all_online,
            lambda error: self._guest_answered(one, None),
        )

    def _guest_answered(
        self, one: Instance, offline: frozenset[int] | None
    ) -> None:
        one.busy = False
        one.reachable = offline is not None
        one.probes += 1
        if one.reachable:
            one.order_retry_s = 0.0
        # It boots, has no agent, or could not be reached yet.
        one.retry_s = (
            None
            if one.reachable
            else self._clock()
            + min(
                _RETRY_MAX_S, min(RETRY_S, one.probes) * 2 ** (one.probes // 4)
            )
        )
        if offline:
            self.say(
                one,
                errors.Code.BALLOON_RETURNED,
                messages.Severity.INFO,
                'it started without vCPUs %s; it has them again'
                % (sorted(offline)),
                Outcome.UNDONE,
            )

    def read_counter(self, one: Instance, now_s: float) -> None:
        """Read its progress counter."""
        path = self._settings.progress_path
        if not (path and one.wishes.auto and one.reachable) or (
            now_s < one.counter_s
        ):
            return
        # An idle instance need not be read.
        if one.record is None and (
            one.window.work().runnable < self._settings.active_cpus
        ):
            return
        # Not again before this read has finished.
        one.counter_s = math.inf
        uuid = one.uuid

        def read() -> Step:
            value = None
            try:
                value = self._channel.progress(
                    uuid, path, self._settings.guest_timeout_s
                )
            except channels.ChannelFailed as failure:
                LOG.debug('instance %s: %s', uuid, failure)
            at_s = self._clock()
            return lambda: self._counter_read(one, at_s, value)

        self._submit(
            one,
            read,
            lambda error: self._counter_read(one, self._clock(), None),
            False,
        )

    def read_counter_soon(self, one: Instance, now_s: float) -> None:
        """Read its counter as soon as it yields a rate, then decide.

        Otherwise the decision would wait for the next sample.
        """
        if one.eager:
            return
        one.eager = True
        if not math.isinf(one.counter_s):
            timer = threading.Timer(
                max(0.0, one.counter_s - now_s),
                self._post,
                [lambda: self.read_counter(one, self._clock())],
            )
            timer.daemon = True
            timer.start()

    def _counter_read(
        self, one: Instance, at_s: float, value: int | None
    ) -> None:
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
        return (
            self._settings.bind
            and one.bindable
            and record is not None
            and part.vcpus == one.online
            and bool(part.cpus)
            and set(part.cpus) != set(record.pins.values())
        )

    def refuse(self, one: Instance, refused: errors.Refused) -> None:
        """Record that an operator's request is refused for now."""
        before, one.refused = one.refused, refused
        if before is None or before.code != refused.code:
            self.say(
                one,
                errors.Code.BALLOON_REFUSED,
                messages.Severity.WARNING,
                refused.detail,
                None,
                {**refused.figures, 'cause': str(refused.code)},
            )

    def shrink(
        self,
        one: Instance,
        part: balloon.Part,
        now_s: float,
        manual: bool = False,
    ) -> None:
        """Leave it with its part; a dry run only reports that.

        :param manual: whether an operator requested it.
        """
        pace = self._settings.pace
        work = one.work(one.window, one.seen_since_s(now_s))
        online = balloon.kept_online(one.indexes, part.vcpus)
        cause = (
            'it gets CPUs of its own'
            if part.vcpus == one.online
            else 'others need more CPUs, or fewer'
        )
        if manual:
            cause = 'an operator ordered %d vCPUs' % part.vcpus
        elif one.record is None:
            cause = (
                'its vCPUs waited %d %% of the time that they could '
                'run' % (100 * work.wait_share)
            )
        if self._settings.dry_run:
            one.status = one.status.full(now_s, Outcome.CALM, pace)
            self.say(
                one,
                errors.Code.BALLOON_PROPOSED,
                messages.Severity.INFO,
                'it would be left with %d of %d vCPUs: %s'
                % (part.vcpus, one.vcpus, cause),
                None,
            )
            self._chronicle.nothing(
                one,
                chronicles.Wanted(part.vcpus, cause, manual),
                Outcome.PROPOSED,
            )
            return
        keep = steps_of.Keep(
            online,
            dict(zip(sorted(online), part.cpus, strict=False)),
            cause,
            manual,
        )
        previous, domain = one.record, one.domain
        one.busy = True

        def act() -> Step:
            try:
                taken = self._steps.shrink(domain, keep, previous)
            except steps_of.StepFailed as failure:
                return functools.partial(self._not_shrunk, one, keep, failure)
            return lambda: self._shrunk(one, work, taken)

        self._submit(
            one,
            act,
            lambda error: self._not_shrunk(
                one, keep, steps_of.StepFailed(ascii(error)[:300], True)
            ),
        )

    def _shrunk(
        self, one: Instance, before: contention.Work, taken: steps_of.Taken
    ) -> None:
        now_s, previous, before_vcpus = (self._clock(), one.record, one.online)
        if previous is not None:
            self._chronicle.ended(
                previous, Outcome.CHANGED, taken.record.cause
            )
        one.busy, one.record = (
            False,
            self._chronicle.taken(
                one, taken.record, before_vcpus, taken.offline_s
            ),
        )
        one.begin()
        one.bindable = not taken.unbindable
        one.status = one.status.shrunk(now_s, before, self._settings.pace)
        if previous is not None or taken.record.manual:
            # Its benefit is known, or not judged.
            one.status = one.status.kept(now_s)
        if previous is not None and not taken.record.manual:
            one.record = self._chronicle.kept(one.record, taken.record.cause)
        self._steps.note(one.record)
        self.say(
            one,
            errors.Code.BALLOON_TAKEN,
            messages.Severity.INFO,
            'it is left with %d of %d vCPUs: %s'
            % (one.online, one.vcpus, taken.record.cause),
            None,
            {
                'offline_s': round(taken.offline_s, 3),
                'cpus': sorted(taken.record.pins.values()),
            },
        )

    def kept(self, one: Instance, reason: str, now_s: float) -> None:
        """Keep its balloon, which is beneficial."""
        assert one.record is not None
        one.status = one.status.kept(now_s)
        one.record = self._chronicle.kept(one.record, reason)
        self._steps.note(one.record)
        self.say(
            one,
            errors.Code.BALLOON_KEPT,
            messages.Severity.INFO,
            'it keeps %d of %d vCPUs: %s' % (one.online, one.vcpus, reason),
            Outcome.KEPT,
        )

    def _not_shrunk(
        self, one: Instance, keep: steps_of.Keep, failure: steps_of.StepFailed
    ) -> None:
        one.busy = False
        now_s = self._clock()
        if one.record is not None:
            self._chronicle.ended(one.record, Outcome.FAILED, str(failure))
        told = self._chronicle.nothing(
            one,
            chronicles.Wanted(len(keep.online), keep.cause, keep.manual),
            Outcome.FAILED,
            str(failure),
        )
        one.begin()
        one.status = one.status.full(
            now_s, Outcome.FAILED, self._settings.pace
        )
        one.record = None
        self.say(
            one,
            errors.Code.BALLOON_FAILED,
            messages.Severity.WARNING,
            'vCPUs cannot be taken: %s' % failure,
            Outcome.FAILED,
        )
        one.order_retry_s = one.status.not_before_s
        if failure.code is errors.Code.BALLOON_GUEST_AGENT_UNAVAILABLE:
            # It is probed again until it answers.
            one.reachable, one.probes = False, 1
            one.retry_s = now_s + RETRY_S
        if keep.manual:
            self.refuse(
                one,
                errors.Refused(
                    'it cannot be left with %d vCPUs: %s'
                    % (len(keep.online), failure),
                    failure.code,
                ),
            )
        if failure.stuck:
            one.record = next(
                (
                    dataclasses.replace(record, change=told)
                    for record in self._steps.records()
                    if record.instance_uuid == one.uuid
                ),
                None,
            )
            one.leave, one.outcome = str(failure), Outcome.FAILED
            one.retry_s = now_s + RETRY_S

    def give_back(self, one: Instance, cause: str, outcome: Outcome) -> None:
        """Give all of its vCPUs back."""
        record, unexpected_online = one.record, one.unexpected_online
        assert record is not None
        one.busy, one.leave, one.outcome = True, cause, outcome

        def act() -> Step:
            failure: str | None = None
            try:
                self._steps.grow(record, unexpected_online)
            except steps_of.StepFailed as error:
                failure = str(error)
            return lambda: self._given_back(one, failure)

        self._submit(
            one, act, lambda error: self._given_back(one, ascii(error)[:300])
        )

    def _given_back(self, one: Instance, failure: str | None) -> None:
        one.busy = False
        now_s = self._clock()
        if failure is not None:
            if one.retry_s is None:
                self.say(
                    one,
                    errors.Code.BALLOON_FAILED,
                    messages.Severity.WARNING,
                    'vCPUs cannot be given back yet: %s' % failure,
                    None,
                )
            one.retry_s = now_s + RETRY_S
            return
        outcome, cause = one.outcome, one.leave
        since = one.record.at if one.record else time.time()
        if one.record is not None:
            self._chronicle.ended(one.record, outcome, str(cause))
        one.record = one.retry_s = one.leave = None
        one.outcome, one.unexpected_online, one.reachable = (
            Outcome.UNDONE,
            False,
            True,
        )
        one.begin()
        one.status = one.status.full(now_s, outcome, self._settings.pace)
        one.order_retry_s = one.status.not_before_s
        self.say(
            one,
            errors.Code.BALLOON_RETURNED,
            messages.Severity.INFO,
            'it has all %d vCPUs again: %s' % (one.vcpus, cause),
            outcome,
            {'duration_s': round(time.time() - since, 1)},
        )

    def say(
        self,
        one: Instance,
        code: errors.Code,
        severity: messages.Severity,
        detail: str,
        outcome: Outcome | None,
        figures: dict[str, object] | None = None,
    ) -> None:
        """Emit an event about it."""
        self._tell(
            code,
            severity,
            '%s: %s' % (one.domain.name, detail),
            one.uuid,
            {
                'vcpus': one.online,
                'configured': one.vcpus,
                **({'outcome': str(outcome)} if outcome else {}),
                **(figures or {}),
            },
        )
