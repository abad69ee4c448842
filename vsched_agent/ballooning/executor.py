# SPDX-License-Identifier: Apache-2.0

"""Make balloons, keep them and give vCPUs back.

Each action marks its instance as busy until its result is recorded.
"""

from collections.abc import Callable
import dataclasses
import functools
import time

from vsched_agent.ballooning import action_runner
from vsched_agent.ballooning import base
from vsched_agent.ballooning import events as balloon_events
from vsched_agent.ballooning import history as histories
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import transaction
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention

Instance = instances.Instance
Outcome = balloon_trial.Outcome


class BalloonExecutor:
    """Starts actions on instances; every method returns at once.

    :param settings: thresholds, times and so on.
    :param transactions: transactions on one instance.
    :param runner: runs actions.
    :param events: emits events about instances.
    :param history: reports balloons.
    :param clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: base.Settings,
        transactions: transaction.BalloonTransactions,
        runner: action_runner.ActionRunner,
        events: balloon_events.BalloonEvents,
        history: histories.BalloonHistory,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._transactions = transactions
        self._runner = runner
        self._events = events
        self._history = history
        self._clock = clock

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
            self._events.emit(
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
        work = one.work(one.window, one.window_start_s(now_s))
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
            self._events.emit(
                one,
                errors.Code.BALLOON_PROPOSED,
                messages.Severity.INFO,
                'it would be left with %d of %d vCPUs: %s'
                % (part.vcpus, one.vcpus, cause),
                None,
            )
            self._history.attempted(
                one,
                histories.Attempt(part.vcpus, cause, manual),
                Outcome.PROPOSED,
            )
            return
        target = transaction.BalloonTarget(
            online,
            dict(zip(sorted(online), part.cpus, strict=False)),
            cause,
            manual,
        )
        previous, domain = one.record, one.domain
        one.busy = True

        def act() -> action_runner.Completion:
            try:
                result = self._transactions.shrink(domain, target, previous)
            except transaction.TransactionFailed as failure:
                return functools.partial(
                    self._not_shrunk, one, target, failure
                )
            return lambda: self._shrunk(one, work, result)

        self._runner.submit(
            one,
            act,
            lambda error: self._not_shrunk(
                one,
                target,
                transaction.TransactionFailed(ascii(error)[:300], True),
            ),
        )

    def _shrunk(
        self,
        one: Instance,
        before: contention.Work,
        result: transaction.BalloonResult,
    ) -> None:
        now_s, previous, before_vcpus = (self._clock(), one.record, one.online)
        if previous is not None:
            self._history.ended(previous, Outcome.CHANGED, result.record.cause)
        one.busy, one.record = (
            False,
            self._history.taken(
                one, result.record, before_vcpus, result.offline_s
            ),
        )
        one.reset_windows()
        one.bindable = not result.unbindable
        one.status = one.status.shrunk(now_s, before, self._settings.pace)
        if previous is not None or result.record.manual:
            # Its benefit is known, or not judged.
            one.status = one.status.kept(now_s)
        if previous is not None and not result.record.manual:
            one.record = self._history.kept(one.record, result.record.cause)
        self._transactions.note(one.record)
        self._events.emit(
            one,
            errors.Code.BALLOON_TAKEN,
            messages.Severity.INFO,
            'it is left with %d of %d vCPUs: %s'
            % (one.online, one.vcpus, result.record.cause),
            None,
            {
                'offline_s': round(result.offline_s, 3),
                'cpus': sorted(result.record.pins.values()),
            },
        )

    def keep(self, one: Instance, reason: str, now_s: float) -> None:
        """Keep its balloon, which is beneficial."""
        assert one.record is not None
        one.status = one.status.kept(now_s)
        one.record = self._history.kept(one.record, reason)
        self._transactions.note(one.record)
        self._events.emit(
            one,
            errors.Code.BALLOON_KEPT,
            messages.Severity.INFO,
            'it keeps %d of %d vCPUs: %s' % (one.online, one.vcpus, reason),
            Outcome.KEPT,
        )

    def _not_shrunk(
        self,
        one: Instance,
        target: transaction.BalloonTarget,
        failure: transaction.TransactionFailed,
    ) -> None:
        one.busy = False
        now_s = self._clock()
        if one.record is not None:
            self._history.ended(one.record, Outcome.FAILED, str(failure))
        report = self._history.attempted(
            one,
            histories.Attempt(len(target.online), target.cause, target.manual),
            Outcome.FAILED,
            str(failure),
        )
        one.reset_windows()
        one.status = one.status.full(
            now_s, Outcome.FAILED, self._settings.pace
        )
        one.record = None
        self._events.emit(
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
            one.retry_s = now_s + action_runner.RETRY_S
        if target.manual:
            self.refuse(
                one,
                errors.Refused(
                    'it cannot be left with %d vCPUs: %s'
                    % (len(target.online), failure),
                    failure.code,
                ),
            )
        if failure.stuck:
            one.record = next(
                (
                    dataclasses.replace(record, change=report)
                    for record in self._transactions.records()
                    if record.instance_uuid == one.uuid
                ),
                None,
            )
            one.return_cause, one.outcome = str(failure), Outcome.FAILED
            one.retry_s = now_s + action_runner.RETRY_S

    def give_back(self, one: Instance, cause: str, outcome: Outcome) -> None:
        """Give all of its vCPUs back."""
        record, unexpected_online = one.record, one.unexpected_online
        assert record is not None
        one.busy, one.return_cause, one.outcome = True, cause, outcome

        def act() -> action_runner.Completion:
            failure: str | None = None
            try:
                self._transactions.grow(record, unexpected_online)
            except transaction.TransactionFailed as error:
                failure = str(error)
            return lambda: self._given_back(one, failure)

        self._runner.submit(
            one, act, lambda error: self._given_back(one, ascii(error)[:300])
        )

    def _given_back(self, one: Instance, failure: str | None) -> None:
        one.busy = False
        now_s = self._clock()
        if failure is not None:
            if one.retry_s is None:
                self._events.emit(
                    one,
                    errors.Code.BALLOON_FAILED,
                    messages.Severity.WARNING,
                    'vCPUs cannot be given back yet: %s' % failure,
                    None,
                )
            one.retry_s = now_s + action_runner.RETRY_S
            return
        outcome, cause = one.outcome, one.return_cause
        since = one.record.at if one.record else time.time()
        if one.record is not None:
            self._history.ended(one.record, outcome, str(cause))
        one.record = one.retry_s = one.return_cause = None
        one.outcome, one.unexpected_online, one.reachable = (
            Outcome.UNDONE,
            False,
            True,
        )
        one.reset_windows()
        one.status = one.status.full(now_s, outcome, self._settings.pace)
        one.order_retry_s = one.status.not_before_s
        self._events.emit(
            one,
            errors.Code.BALLOON_RETURNED,
            messages.Severity.INFO,
            'it has all %d vCPUs again: %s' % (one.vcpus, cause),
            outcome,
            {'duration_s': round(time.time() - since, 1)},
        )
