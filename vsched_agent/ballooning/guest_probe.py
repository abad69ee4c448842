# SPDX-License-Identifier: Apache-2.0

"""Ask guests which vCPUs they use."""

from collections.abc import Callable

from oslo_log import log as logging

from vsched_agent.ballooning import action_runner
from vsched_agent.ballooning import base
from vsched_agent.ballooning import events as balloon_events
from vsched_agent.ballooning import executor as executors
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import transaction
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import balloon_trial

LOG = logging.getLogger(__name__)

Instance = instances.Instance
Outcome = balloon_trial.Outcome

#: The longest wait for a guest that has never answered, in seconds.
_RETRY_MAX_S = 300.0
#: A guest that does not answer so often does not merely boot: more than half
#: of a minute.
_BOOT_PROBES = 8


class GuestProbe:
    """Asks guests for their vCPUs; every method returns at once.

    :param transactions: ask guests, and bring vCPUs online.
    :param runner: runs actions.
    :param events: emits events about instances.
    :param executor: gives vCPUs back.
    :param clock: monotonic seconds.
    """

    def __init__(
        self,
        transactions: transaction.BalloonTransactions,
        runner: action_runner.ActionRunner,
        events: balloon_events.BalloonEvents,
        executor: executors.BalloonExecutor,
        clock: Callable[[], float],
    ) -> None:
        self._transactions = transactions
        self._runner = runner
        self._events = events
        self._executor = executor
        self._clock = clock

    def check(self, one: Instance) -> None:
        """Check whether the guest uses only its remaining vCPUs."""
        if one.record is None or one.busy:
            return
        record, uuid = one.record, one.uuid

        def act() -> action_runner.Completion:
            try:
                unexpected_online = self._transactions.unexpected_online(
                    record
                )
            except channels.ChannelFailed as failure:
                LOG.debug('instance %s: %s', uuid, failure)
                return lambda: self._no_answer(one, record)
            return lambda: self._checked(one, record, unexpected_online)

        self._runner.submit(
            one, act, lambda error: self._no_answer(one, record), False
        )

    def _no_answer(self, one: Instance, record: base.Record) -> None:
        # It probably boots, and its vCPUs are unknown.
        if one.record is record and one.return_cause is None:
            one.return_cause = 'it changed, and its guest does not answer'

    def _checked(
        self, one: Instance, record: base.Record, unexpected_online: bool
    ) -> None:
        if unexpected_online and one.record is record and not one.busy:
            one.unexpected_online = True
            self._executor.give_back(
                one, 'its guest uses other vCPUs', Outcome.UNDONE
            )

    def probe(self, one: Instance, now_s: float) -> None:
        """Ask a new guest for its vCPUs and bring all online."""
        required = one.flavor.auto or (
            one.orphan and one.probes < _BOOT_PROBES
        )
        if (
            one.reachable
            or one.record is not None
            or not required
            or now_s < (one.retry_s or now_s)
        ):
            return
        one.busy = True

        def act() -> action_runner.Completion:
            offline: frozenset[int] | None = None
            try:
                offline = self._transactions.bring_all_online(one.domain)
            except channels.ChannelFailed as failure:
                LOG.debug('%s: %s', one.domain.name, failure)
            return lambda: self._probed(one, offline)

        self._runner.submit(one, act, lambda error: self._probed(one, None))

    def _probed(self, one: Instance, offline: frozenset[int] | None) -> None:
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
                _RETRY_MAX_S,
                min(action_runner.RETRY_S, one.probes)
                * 2 ** (one.probes // 4),
            )
        )
        if offline:
            self._events.emit(
                one,
                errors.Code.BALLOON_RETURNED,
                messages.Severity.INFO,
                'it started without vCPUs %s; it has them again'
                % (sorted(offline)),
                Outcome.UNDONE,
            )
