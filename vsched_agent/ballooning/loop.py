# SPDX-License-Identifier: Apache-2.0

"""The thread of ballooning.

One thread decides, from the reconciler thread's samples, and others act: a
slow guest delays neither.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import queue
import threading
import time

from oslo_log import log as logging

from vsched_agent.ballooning import action_runner
from vsched_agent.ballooning import base
from vsched_agent.ballooning import events as balloon_events
from vsched_agent.ballooning import executor
from vsched_agent.ballooning import guest_probe
from vsched_agent.ballooning import history
from vsched_agent.ballooning import instance as instances
from vsched_agent.ballooning import instance_table
from vsched_agent.ballooning import orders as balloon_orders
from vsched_agent.ballooning import planner
from vsched_agent.ballooning import progress_counter
from vsched_agent.ballooning import transaction
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_lib.contract import balloons
from vsched_lib.model import balloon_trial
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

Instance = instances.Instance

#: Seconds between attempts while the agent stops.
_AGAIN_S = 0.5
#: Most queued samples; further ones are dropped.
_MOST_WAITING = 3


class BalloonLoop:
    """Runs what other threads request, one after the other.

    :param settings: thresholds, times and so on.
    :param channel: the channel to the guests; started by the caller.
    :param transactions: transactions on one instance.
    :param emit_event: emits events.
    :param cpus: the host's CPUs in topological order.
    :param publish: reports instances' states.
    :param clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: base.Settings,
        channel: channels.VcpuChannel,
        transactions: transaction.BalloonTransactions,
        emit_event: base.EventCallback,
        cpus: Callable[[], Sequence[int]],
        publish: base.Publish,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._problems = problem_log.ProblemLog(LOG)
        self._closing = False
        self.posted: queue.SimpleQueue[Callable[[], None] | None] = (
            queue.SimpleQueue()
        )
        self._idle = threading.Event()
        self._history = history.BalloonHistory(settings, publish, clock)
        self._table = instance_table.InstanceTable(
            settings, channel, transactions, self._history
        )
        self._runner = action_runner.ActionRunner(
            transactions, clock, self.posted.put
        )
        events = balloon_events.BalloonEvents(emit_event)
        self._executor = executor.BalloonExecutor(
            settings, transactions, self._runner, events, self._history, clock
        )
        self._probe = guest_probe.GuestProbe(
            transactions, self._runner, events, self._executor, clock
        )
        self._counters = progress_counter.ProgressCounters(
            settings,
            channel,
            self._runner,
            clock,
            self.posted.put,
            self._decide,
        )
        self._planner = planner.BalloonPlanner(
            settings,
            cpus,
            self._table,
            self._executor,
            balloon_orders.BalloonOrders(self._executor, self._history),
            self._counters,
        )
        self._thread = threading.Thread(
            target=self._run, name='vsched-ballooning', daemon=True
        )

    # Called from other threads

    def recover(self) -> list[base.Record]:
        """Load an earlier agent's records; call it first.

        :returns: the balloons in force; each is undone as soon as its
            instance is seen.
        """
        return self._table.recover()

    def start(self) -> None:
        """Start the thread."""
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
        self._runner.close()

    def add_samples(self, samples: Sequence[base.Sample]) -> None:
        """Add the samples of all running instances."""
        if self.posted.qsize() < _MOST_WAITING:
            self.posted.put(lambda: self.process_samples(samples))

    def changed(self, uuid: str | None) -> None:
        """Check an instance that may have been restarted."""
        if uuid is not None:
            self.posted.put(lambda: self._check_guest(uuid))

    def records_lost(self, uuids: frozenset[str]) -> None:
        """Handle the loss of records: instances may lack vCPUs.

        :param uuids: of the instances that run.
        """
        self.posted.put(lambda: self._table.records_lost(uuids))

    def order(self, orders: Iterable[balloons.BalloonOrder]) -> None:
        """Set all of the operators' requests for this host."""
        found = {one.instance_uuid: one for one in orders}
        self.posted.put(lambda: self._set_orders(found))

    def instances(self) -> list[Instance]:
        """Return the running instances; read-only."""
        return self._table.instances()

    # The loop's thread

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

    def process_samples(self, samples: Sequence[base.Sample]) -> None:
        """Process samples, and decide; called by the thread."""
        now_s = self._clock()
        self._table.add_samples(samples, now_s)
        self._table.each(lambda one: self._query_guest(one, now_s))
        if not self._closing:
            self._planner.decide(now_s)
        self._publish_states()

    def _query_guest(self, one: Instance, now_s: float) -> None:
        if not (one.busy or self._closing):
            self._probe.probe(one, now_s)
            self._counters.read(one, now_s)

    def _publish_states(self) -> None:
        self._table.each(self._history.publish_state)

    def _set_orders(self, orders: dict[str, balloons.BalloonOrder]) -> None:
        self._table.set_orders(orders)
        self._decide()

    def _decide(self) -> None:
        if not self._closing:
            self._planner.decide(self._clock())

    def _check_guest(self, uuid: str) -> None:
        one = self._table.get(uuid)
        if one is not None:
            self._probe.check(one)

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
                self._executor.give_back(
                    one, 'the agent stops', balloon_trial.Outcome.UNDONE
                )

        self._table.each(give_back)
        if not any(
            one.busy or one.record is not None
            for one in self._table.instances()
        ):
            self._idle.set()
