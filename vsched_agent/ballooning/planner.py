# SPDX-License-Identifier: Apache-2.0

"""Decide which instances lose vCPUs, keep balloons or get vCPUs back."""

from collections.abc import Callable
from collections.abc import Sequence

from vsched_agent.ballooning import base
from vsched_agent.ballooning import executor as executors
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import instance_table
from vsched_agent.ballooning import orders as balloon_orders
from vsched_agent.ballooning import progress_counter
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention

Instance = instances.Instance
Outcome = balloon_trial.Outcome


class BalloonPlanner:
    """Takes vCPUs from contending instances while that is beneficial.

    :param settings: thresholds, times and so on.
    :param cpus: the host's CPUs in topological order.
    :param table: the running instances.
    :param executor: starts actions on instances.
    :param orders: applies operators' requests.
    :param counters: reads progress counters.
    """

    def __init__(
        self,
        settings: base.Settings,
        cpus: Callable[[], Sequence[int]],
        table: instance_table.InstanceTable,
        executor: executors.BalloonExecutor,
        orders: balloon_orders.BalloonOrders,
        counters: progress_counter.ProgressCounters,
    ) -> None:
        self._settings = settings
        self._cpus = cpus
        self._table = table
        self._executor = executor
        self._orders = orders
        self._counters = counters

    def decide(self, now_s: float) -> None:
        """Decide about all instances, and start actions."""
        ready = {
            one.uuid
            for one in self._table.instances()
            if self._ready(one, now_s)
        }
        active = [one for one in self._table.instances() if self._active(one)]
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
        self._table.each(
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
            and self._return_if_required(one, now_s)
        ):
            return
        if one.order is not None and one.order.target_vcpus is not None:
            self._orders.apply_target(one, part, now_s)
        elif one.frozen:
            return
        elif one.record is not None:
            self._review(one, part, triggered, now_s)
        elif triggered and part is not None and part.vcpus < one.vcpus:
            # A rate for comparison needs two readings of the counter.
            if one.rate_expected(now_s):
                self._counters.read_soon(one, now_s)
            else:
                self._executor.shrink(one, part, now_s)

    def _ready(self, one: Instance, now_s: float) -> bool:
        free = one.order is None or not (
            one.frozen or one.order.target_vcpus is not None
        )
        return (
            free
            and one.flavor.auto
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

    def _return_if_required(self, one: Instance, now_s: float) -> bool:
        """Give all vCPUs back if required; return whether that is so."""
        record = one.record
        assert record is not None
        if one.retry_s is not None and now_s < one.retry_s:
            return True
        if one.return_cause is None and one.unexpected_online:
            one.return_cause = 'its guest uses vCPUs that were taken'
        elif one.return_cause is None and not one.flavor.auto:
            one.return_cause = 'its flavor does not allow it any more'
        elif one.return_cause is None and one.altered:
            one.return_cause = 'it has got other vCPUs'
        elif (
            one.return_cause is None
            and record.manual
            and not one.frozen
            and (one.order is None or one.order.target_vcpus is None)
        ):
            one.return_cause = 'what an operator ordered was withdrawn'
        if one.return_cause is not None:
            self._executor.give_back(one, one.return_cause, one.outcome)
        return one.return_cause is not None

    def _review(
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
                self._executor.shrink(one, part, now_s)
            elif (
                part is not None
                and self._executor.misplaced(one, part)
                and (one.status.may_shrink(now_s))
            ):
                self._executor.shrink(one, part, now_s)
            elif one.status.may_grow(now_s, pace):
                if part is None or part.vcpus >= one.vcpus:
                    self._executor.give_back(
                        one, 'the CPUs are not short any more', Outcome.CALM
                    )
                else:
                    self._executor.shrink(one, part, now_s)

    def _judge(self, one: Instance, now_s: float) -> None:
        before = one.status.before
        assert before is not None
        verdict = balloon_trial.judge(
            before,
            one.work(
                one.trial_window,
                one.status.since_s + self._settings.pace.settle_s,
            ),
            self._settings.bar,
            one.online,
        )
        if verdict.decision is balloon_trial.Decision.LOSES:
            self._executor.give_back(one, verdict.reason, Outcome.REVERTED)
        elif verdict.decision is balloon_trial.Decision.UNKNOWN and not (
            self._settings.keep_unknown
        ):
            self._executor.give_back(one, verdict.reason, Outcome.UNKNOWN)
        else:
            self._executor.keep(one, verdict.reason, now_s)
