# SPDX-License-Identifier: Apache-2.0

"""Deliver the reports of simulated hosts, and fetch what is ordered there."""

from collections.abc import Sequence
from concurrent import futures
import dataclasses
import heapq
import threading
import time
import typing as ty
import uuid

from oslo_log import log as logging

from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire
from vsched_standalone.demo import fleet

LOG = logging.getLogger(__name__)

#: How many agents deliver at the same time.
_THREADS = 8
#: The length of one sample of the CPU time before the demonstration began.
_HISTORY_INTERVAL_S = 30
#: A report of a host in so many has a repaired drift.
_DRIFT_EVERY = 150


class Agent:
    """One simulated agent.

    Not thread-safe: one call at a time.

    :param member: its host.
    :param client: the collector.
    :param history_s: for how long before its first report the CPU time is
        reported as well.
    """

    def __init__(
        self,
        member: fleet.Member,
        client: collector_rpc.CollectorClient,
        history_s: int,
    ) -> None:
        self._member = member
        self._host = member.host
        self._client = client
        self._history_s = history_s
        self._epoch = uuid.uuid4().hex
        self._batch = 0
        self._after: int | None = None
        self._sampled_at: float | None = None
        self._full = True
        self._waiting: messages.Report | None = None

    @property
    def name(self) -> str:
        """Return the name of the host."""
        return self._host.name

    @property
    def silent(self) -> bool:
        """Return whether no further report follows."""
        return self._member.silent and self._batch > 0

    def deliver(self, now: float) -> None:
        """Deliver a report, the one that failed before first.

        What is ordered in the answer is carried out and reported at once.

        :raises errors.Unreachable: when it is not known to be stored.
        :raises wire.MalformedMessage: when the answer is invalid.
        """
        if self._deliver(now):
            self._deliver(now)

    def _deliver(self, now: float) -> bool:
        """Deliver one report; return whether something was ordered."""
        if self._waiting is None:
            self._waiting = self._next(now)
        reply = self._send(self._waiting)
        self._waiting = None
        if reply.resync:
            self._full = True
        host, ordered = self._host, False
        if reply.overrides_generation != host.overrides_generation:
            host.set_overrides(self._client.overrides(host.name), now)
            ordered = True
        if reply.jobs_generation != host.jobs.generation:
            host.jobs.set_orders(self._client.jobs(host.name), now)
            ordered = True
        return ordered

    def _send(self, report: messages.Report) -> collector_replies.ReportReply:
        reply = self._client.report(
            dataclasses.replace(report, after=self._after)
        )
        self._after = reply.last_batch
        if reply.epoch_state is collector_replies.EpochState.UNOPENED:
            reply = self._client.report(
                dataclasses.replace(report, after=self._after)
            )
            self._after = reply.last_batch
        return reply

    def _next(self, now: float) -> messages.Report:
        self._batch += 1
        if self._batch % _DRIFT_EVERY == 0:
            self._host.repair_drift(now)
        contents = self._host.contents(now, self._times(now), self._full)
        self._full = False
        return messages.Report(
            host=self._host.name,
            batch=self._batch,
            at=now,
            sent_at=now,
            epoch=self._epoch,
            **contents,
        )

    def _times(self, now: float) -> Sequence[tuple[float, int]]:
        before, self._sampled_at = self._sampled_at, now
        if before == now:
            return []
        if before is not None:
            return [(now, max(1, round((now - before) * 1e6)))]
        step_s = _HISTORY_INTERVAL_S
        return [
            (now - ago_s, step_s * 1_000_000)
            for ago_s in range(self._history_s, -1, -step_s)
        ]


class Agents:
    """All agents of a fleet, each at its own time.

    :param members: the hosts.
    :param client: the collector.
    :param interval_s: between two reports of a host.
    :param history_s: see :class:`Agent`.
    :param now: seconds since the epoch.
    """

    def __init__(
        self,
        members: ty.Iterable[fleet.Member],
        client: collector_rpc.CollectorClient,
        interval_s: float,
        history_s: int,
        now: ty.Callable[[], float] = time.time,
    ) -> None:
        self._agents = [Agent(one, client, history_s) for one in members]
        self._numbers = {
            one.name: number for number, one in enumerate(self._agents)
        }
        self._interval_s = interval_s
        self._now = now
        self._stopping = threading.Event()
        self._reported = threading.Event()
        self._unreported = {one.name for one in self._agents}
        self._lock = threading.Lock()
        # Guards the agents that have to report before their time.
        self._wake = threading.Condition()
        self._woken: set[int] = set()
        self._thread = threading.Thread(
            target=self._run, name='vsched-demo-agents', daemon=True
        )

    def start(self) -> None:
        """Start to report."""
        self._thread.start()

    def wait_reported(self, timeout_s: float | None = None) -> bool:
        """Wait until each host has reported once; return whether it has."""
        return self._reported.wait(timeout_s)

    def wake(self, hosts: ty.Iterable[str]) -> None:
        """Have the agents of these hosts report now; others are ignored."""
        with self._wake:
            self._woken.update(
                self._numbers[host] for host in hosts if host in self._numbers
            )
            self._wake.notify()

    def stop(self) -> None:
        """Stop after the reports under way."""
        self._stopping.set()
        with self._wake:
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        # The first reports at once; after them, spread over the interval.
        due = [(began, number) for number in range(len(self._agents))]
        heapq.heapify(due)
        with futures.ThreadPoolExecutor(_THREADS) as pool:
            while not self._stopping.is_set():
                woken = self._await(due[0][0] if due else None)
                batch = []
                while due and due[0][0] <= time.monotonic():
                    batch.append(heapq.heappop(due)[1])
                list(pool.map(self._deliver, {*woken, *batch}))
                for one in batch:
                    if not self._agents[one].silent:
                        heapq.heappush(due, (self._next_time(one, began), one))

    def _await(self, due_s: float | None) -> set[int]:
        """Wait until an agent is due; return those that were woken.

        :param due_s: on the monotonic clock; None when no agent is due.
        """
        with self._wake:
            self._wake.wait_for(
                lambda: self._woken or self._stopping.is_set(),
                None if due_s is None else max(0.0, due_s - time.monotonic()),
            )
            woken, self._woken = self._woken, set()
        return {one for one in woken if not self._agents[one].silent}

    def _next_time(self, number: int, began: float) -> float:
        """Return the next time of an agent: its own part of an interval."""
        offset = self._interval_s * number / len(self._agents)
        rounds = (time.monotonic() - began - offset) // self._interval_s + 1
        return began + offset + max(1, rounds) * self._interval_s

    def _deliver(self, number: int) -> None:
        if self._stopping.is_set():
            return
        agent = self._agents[number]
        try:
            agent.deliver(self._now())
        except (errors.Unreachable, wire.MalformedMessage) as problem:
            LOG.warning('%s: the report waits: %s', agent.name, problem)
            return
        with self._lock:
            self._unreported.discard(agent.name)
            if not self._unreported:
                self._reported.set()
