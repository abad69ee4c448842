# SPDX-License-Identifier: Apache-2.0

"""Apply operators' vCPU counts to instances."""

from vsched_agent.ballooning import executor as executors
from vsched_agent.ballooning import history as histories
from vsched_agent.ballooning import instance as instances
from vsched_lib.contract import balloons
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial

Instance = instances.Instance


class BalloonOrders:
    """Validates operators' requests and applies them.

    :param executor: starts actions on instances.
    :param history: returns instances' states.
    """

    def __init__(
        self,
        executor: executors.BalloonExecutor,
        history: histories.BalloonHistory,
    ) -> None:
        self._executor = executor
        self._history = history

    def apply_target(
        self, one: Instance, part: balloon.Part | None, now_s: float
    ) -> None:
        """Apply or refuse the request; called with each decision.

        :param part: its CPUs, where there are enough.
        """
        order = one.order
        assert order is not None and order.target_vcpus is not None
        target_vcpus = order.target_vcpus
        refused = balloons.refusal(target_vcpus, self._history.report(one))
        if refused is not None:
            self._executor.refuse(one, refused)
            if one.record is not None and one.record.manual:
                # The earlier request must not stay in force.
                self._executor.give_back(
                    one, refused.detail, balloon_trial.Outcome.UNDONE
                )
            return
        if now_s < one.order_retry_s or one.guest_answers is None:
            return
        one.refused = None
        cpus = (
            () if part is None or part.vcpus != target_vcpus else (part.cpus)
        )
        available = balloon.Part(target_vcpus, cpus)
        if one.record is None and target_vcpus == one.vcpus:
            return
        if target_vcpus == one.vcpus:
            self._executor.give_back(
                one,
                'an operator ordered all %d vCPUs' % one.vcpus,
                balloon_trial.Outcome.UNDONE,
            )
        elif (
            one.online != target_vcpus
            or one.record is None
            or (not one.record.manual)
        ):
            self._executor.shrink(one, available, now_s, manual=True)
        elif self._executor.misplaced(one, available) and (
            one.status.may_shrink(now_s)
        ):
            self._executor.shrink(one, available, now_s, manual=True)
