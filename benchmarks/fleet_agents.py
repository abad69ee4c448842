# SPDX-License-Identifier: Apache-2.0

"""Many simulated agents in one process; see :mod:`benchmarks.fleet`.

    python -m benchmarks.fleet_agents TASK

TASK is a :class:`Task` as JSON. Each agent sends a report when it is due, on
a schedule that does not wait for answers: a report that waits for a free
thread or for the collector is late by that time. Prints one JSON object.
"""

import collections
from concurrent import futures
import dataclasses
import heapq
import json
import random
import sys
import threading
import time
import typing as ty
import uuid

from oslo_config import cfg

from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What to simulate.

    :param first: number of the first host.
    :param agents: how many there are.
    :param instances: on each host.
    :param interval_s: between two reports of an agent.
    :param seconds: how long.
    :param master: the master key, in hexadecimal digits.
    """

    transport_url: str
    first: int
    agents: int
    instances: int
    interval_s: float
    seconds: float
    master: str


def name(number: int) -> str:
    """The name of a host."""
    return 'fleet-%04d' % number


#: Agents of one process that wait for an answer at the same time.
THREADS = 32


class Agent:
    """One host's reports.

    :param number: of the host; names it.
    """

    def __init__(self, task: Task, number: int, transport: ty.Any) -> None:
        self._task = task
        self.host = name(number)
        self._key = signing_keys.derive(
            bytes.fromhex(task.master), self.host, 1
        )
        self._epoch = uuid.uuid4().hex
        self._instances = [str(uuid.uuid4()) for _ in range(task.instances)]
        self._client = collector_rpc.CollectorClient(
            transport,
            signer=signing.Signer(
                signing.Mode.REQUIRED,
                self.host,
                lambda: self._key,
                lambda: self._epoch,
            ),
        )
        self._batch = 0
        self._tried = 0
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._outbox: collections.deque[tuple[float, messages.Report]] = (
            collections.deque()
        )
        #: How often a report was not answered in time.
        self.timeouts = 0
        #: Why reports could not be delivered, other than for that.
        self.problems: collections.Counter[str] = collections.Counter()

    def report(self, at: float) -> list[float]:
        """Send the next report, after those that are not answered yet.

        As an agent does: one after the other, each until it is answered.

        :param at: when it is due, on the steady clock.
        :returns: when those that are answered now were due; none when
            another thread sends for this agent.
        """
        with self._lock:
            self._batch += 1
            self._outbox.append((at, self._next()))
        return self.deliver()

    def deliver(self) -> list[float]:
        """Send what is not answered yet; see :meth:`report`."""
        answered: list[float] = []
        if not self._sending.acquire(blocking=False):
            return answered
        try:
            while self._outbox:
                at, report = self._outbox[0]
                self._send(report)
                self._outbox.popleft()
                answered.append(at)
        except errors.Unreachable:
            self.timeouts += 1
        except Exception as problem:
            # It is tried again, and has failed even if that succeeds.
            self.problems['%s: %s' % (type(problem).__name__, problem)] += 1
        finally:
            self._sending.release()
        return answered

    @property
    def unanswered(self) -> int:
        """How many reports are not answered yet."""
        return len(self._outbox)

    def _next(self) -> messages.Report:
        now = time.time()
        return messages.Report(
            self.host,
            self._batch,
            now,
            epoch=self._epoch,
            usage=tuple(self._samples(now)),
            host_usage=tuple(self._host_usage(now)),
            **(self._first() if self._batch == 1 else {}),
        )

    def _send(self, report: messages.Report) -> None:
        tried = report.batch == self._tried
        self._tried = report.batch
        reply = self._client.report(report)
        if reply.epoch_state is collector_replies.EpochState.UNOPENED:
            # The first one; the collector says after which batch.
            reply = self._client.report(
                dataclasses.replace(report, after=reply.last_batch)
            )
        if (reply.duplicate and not tried) or (
            reply.epoch_state is not collector_replies.EpochState.CURRENT
        ):
            raise AssertionError(
                '%s: batch %d is a repeat' % (self.host, report.batch)
            )

    def _first(self) -> dict[str, ty.Any]:
        return {
            'host_info': messages.HostInfo(
                'bench', 'bench', 'bench', 'qemu', 64, 4000, 57_600, 0, 0
            ),
            'instances': tuple(
                messages.InstanceInfo(one, 'fleet', 2)
                for one in self._instances
            ),
        }

    def _seconds(self, now: float) -> list[float]:
        count = round(self._task.interval_s)
        return [now - count + second + 1 for second in range(count)]

    def _samples(self, now: float) -> list[messages.UsageSample]:
        return [
            messages.UsageSample(
                one,
                at,
                1_000_000,
                600_000,
                10_000,
                600_000,
                40_000,
                3_000,
                12_000,
                4_000,
                10_000,
                9_000,
                120,
                80,
            )
            for at in self._seconds(now)
            for one in self._instances
        ]

    def _host_usage(self, now: float) -> list[messages.HostUsage]:
        guest_us = 600_000 * len(self._instances)
        return [
            messages.HostUsage(
                at,
                1_000_000,
                64,
                60_000_000 - guest_us,
                0,
                0,
                guest_us,
                0,
                0,
                4_000_000,
            )
            for at in self._seconds(now)
        ]


def run(task: Task) -> dict[str, ty.Any]:
    """Send reports.

    :returns: ``reports``, each with when it was due, in seconds since the
        start, and its latency in milliseconds; how many calls had
        ``timeouts``, how many reports ``failed`` to be answered at all or
        were answered wrong, and the commonest ``problems``.
    """
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    transport = rpc.get_transport(conf, task.transport_url)
    chance = random.Random(task.first)
    agents = [
        Agent(task, task.first + number, transport)
        for number in range(task.agents)
    ]
    began = time.monotonic()
    # Spread over an interval, as those of real hosts are.
    due = [
        (began + chance.uniform(0, task.interval_s), number)
        for number in range(task.agents)
    ]
    heapq.heapify(due)
    found: list[tuple[float, float]] = []
    lock = threading.Lock()

    def note(answered: list[float]) -> None:
        now = time.monotonic()
        with lock:
            found.extend((at - began, 1000 * (now - at)) for at in answered)

    with futures.ThreadPoolExecutor(THREADS) as pool:
        while due[0][0] < began + task.seconds:
            at, number = heapq.heappop(due)
            time.sleep(max(0.0, at - time.monotonic()))
            pool.submit(
                lambda one, at: note(one.report(at)), agents[number], at
            )
            heapq.heappush(due, (at + task.interval_s, number))
    with futures.ThreadPoolExecutor(THREADS) as pool:
        for agent in agents:
            pool.submit(lambda one: note(one.deliver()), agent)
    transport.cleanup()
    return {
        'reports': [(round(at, 3), round(ms, 2)) for at, ms in found],
        'timeouts': sum(agent.timeouts for agent in agents),
        'failed': sum(
            agent.unanswered + agent.problems.total() for agent in agents
        ),
        'problems': sum(
            (agent.problems for agent in agents), collections.Counter()
        ).most_common(5),
    }


if __name__ == '__main__':
    print(json.dumps(run(Task(**json.loads(sys.argv[1])))))
