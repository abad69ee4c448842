# SPDX-License-Identifier: Apache-2.0

"""Many simulated agents in one process; see :mod:`benchmarks.fleet`.

    python -m benchmarks.fleet_agents TASK

TASK is a :class:`Task` as JSON. Each agent sends a report when it is due, on
a schedule that does not wait for answers: a report that waits for the
collector is late by that time. Prints one JSON object.
"""

import collections
import dataclasses
import heapq
import json
import random
import sys
import time
import typing as ty
import uuid

from benchmarks import fleet_bus
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import messages
from vsched_lib.contract import request_context
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys

_REPORT = 'report'
#: How long reports are waited for after the last one is sent, in seconds.
_LINGER_S = 120.0
#: The longest wait for a reply before expired calls are looked for.
_LOOK_S = 1.0


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


class Agent:
    """One host's reports, one after the other, each until it is answered.

    Reports of samples differ in their number and their times only: the rest
    is made once. A thousand agents in one process would spend more CPU time
    on it than each of them does on its own host.

    :param number: of the host; names it.
    """

    def __init__(self, task: Task, number: int) -> None:
        self._task = task
        self.host = name(number)
        key = signing_keys.derive(bytes.fromhex(task.master), self.host, 1)
        self._epoch = uuid.uuid4().hex
        self._instances = [str(uuid.uuid4()) for _ in range(task.instances)]
        self._signer = signing.Signer(
            signing.Mode.REQUIRED, self.host, lambda: key, lambda: self._epoch
        )
        self._batch = 0
        self._signed: ty.Any = None
        #: When each was due, and what it carries.
        self._outbox: collections.deque[tuple[float, dict[str, ty.Any]]] = (
            collections.deque()
        )
        self._usual = self._report(0, 0.0).to_dict(by_column=True)
        #: Whether the first report of the outbox was sent before.
        self._tried = False
        #: Whether it is sent and not answered yet.
        self.waits = False
        #: How often a report was not answered in time.
        self.timeouts = 0
        #: Why reports could not be delivered, other than for that.
        self.problems: collections.Counter[str] = collections.Counter()

    def plan(self, at: float) -> None:
        """Make the next report.

        :param at: when it is due, on the steady clock.
        """
        self._batch += 1
        self._outbox.append((at, self._next()))

    @property
    def unanswered(self) -> int:
        """How many reports are not answered yet."""
        return len(self._outbox)

    def request(self) -> tuple[dict[str, ty.Any], dict[str, ty.Any]]:
        """Return the arguments and the context of the oldest report."""
        _, report = self._outbox[0]
        arguments = {'report': report}
        context = request_context.outgoing()
        self._signed = self._signer.sign(_REPORT, arguments)
        context[signing.FIELD] = self._signed[1].to_dict()
        self.waits = True
        return arguments, context

    def expire(self) -> None:
        """Note that there was no answer in time."""
        self.waits = False
        self._tried = True
        self.timeouts += 1

    def take(self, result: ty.Any, failure: str | None) -> float | None:
        """Take an answer.

        :returns: when the report was due that is answered now; None if it
            is not. It is to be sent again then.
        """
        self.waits = False
        tried, self._tried = self._tried, True
        try:
            if failure is not None:
                raise AssertionError(failure)
            reply = collector_replies.ReportReply.from_dict(
                self._signer.check(_REPORT, self._signed, result)
            )
            return self._answered(reply, tried)
        except Exception as problem:
            # It is tried again, and has failed even if that succeeds.
            self.problems['%s: %s' % (type(problem).__name__, problem)] += 1
            return None

    def _answered(
        self, reply: collector_replies.ReportReply, tried: bool
    ) -> float | None:
        at, report = self._outbox[0]
        if reply.epoch_state is collector_replies.EpochState.UNOPENED:
            # The first one; the collector says after which batch.
            self._outbox[0] = (at, {**report, 'after': reply.last_batch})
            self._tried = tried
            return None
        if (reply.duplicate and not tried) or (
            reply.epoch_state is not collector_replies.EpochState.CURRENT
        ):
            raise AssertionError(
                '%s: batch %d is a repeat' % (self.host, report['batch'])
            )
        self._outbox.popleft()
        self._tried = False
        return at

    def _next(self) -> dict[str, ty.Any]:
        now = time.time()
        if self._batch == 1:
            return self._report(1, now, **self._first()).to_dict(
                by_column=True
            )
        seconds = self._seconds(now)
        return {
            **self._usual,
            'batch': self._batch,
            'at': now,
            'usage': {
                **self._usual['usage'],
                'at': [at for at in seconds for _ in self._instances],
            },
            'host_usage': {**self._usual['host_usage'], 'at': seconds},
        }

    def _report(
        self, batch: int, now: float, **more: ty.Any
    ) -> messages.Report:
        return messages.Report(
            self.host,
            batch,
            now,
            epoch=self._epoch,
            usage=tuple(self._samples(now)),
            host_usage=tuple(self._host_usage(now)),
            **more,
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


class _Fleet:
    """The agents of a process.

    :ivar found: when each answered report was due, on the steady clock, and
        its latency in milliseconds.
    """

    def __init__(self, task: Task) -> None:
        self.agents = [
            Agent(task, task.first + number) for number in range(task.agents)
        ]
        self.found: list[tuple[float, float]] = []
        self._bus = fleet_bus.Bus(task.transport_url, self._take)
        #: By call.
        self._waiting: dict[str, Agent] = {}
        #: In the order in which they expire.
        self._calls: collections.deque[tuple[float, str]] = collections.deque()

    @property
    def unanswered(self) -> bool:
        """Whether any report is not answered yet."""
        return any(agent.unanswered for agent in self.agents)

    def report(self, agent: Agent, at: float) -> None:
        """Let an agent send its next report, after those before."""
        agent.plan(at)
        self.deliver(agent)

    def deliver(self, agent: Agent) -> None:
        """Send what an agent has, unless it waits for an answer."""
        if agent.waits or not agent.unanswered:
            return
        call = self._bus.call(_REPORT, *agent.request())
        self._waiting[call] = agent
        self._calls.append(
            (time.monotonic() + collector_rpc.REPORT_TIMEOUT_S, call)
        )

    def wait(self, until_s: float) -> None:
        """Take answers until then, and one at least that is there."""
        while True:
            now = time.monotonic()
            while self._calls and self._calls[0][0] <= now:
                agent = self._waiting.pop(self._calls.popleft()[1], None)
                if agent is not None:
                    agent.expire()
            self._bus.drain(min(_LOOK_S, max(0.0, until_s - now)))
            if time.monotonic() >= until_s:
                return

    def close(self) -> None:
        """Close the connection."""
        self._bus.close()

    def _take(self, call: str, result: ty.Any, failure: str | None) -> None:
        agent = self._waiting.pop(call, None)
        if agent is None:
            # It came too late, and is repeated.
            return
        problems = agent.problems.total()
        at = agent.take(result, failure)
        if at is not None:
            self.found.append((at, 1000 * (time.monotonic() - at)))
        if agent.problems.total() == problems:
            self.deliver(agent)


def run(task: Task) -> dict[str, ty.Any]:
    """Send reports.

    :returns: ``reports``, each with when it was due, in seconds since the
        start, and its latency in milliseconds; how many calls had
        ``timeouts``, how many reports ``failed`` to be answered at all or
        were answered wrong, and the commonest ``problems``.
    """
    fleet = _Fleet(task)
    chance = random.Random(task.first)
    began = time.monotonic()
    # Spread over an interval, as those of real hosts are.
    due = [
        (began + chance.uniform(0, task.interval_s), number)
        for number in range(task.agents)
    ]
    heapq.heapify(due)
    while due[0][0] < began + task.seconds:
        at, number = due[0]
        fleet.wait(at)
        heapq.heapreplace(due, (at + task.interval_s, number))
        fleet.report(fleet.agents[number], at)
    ends = time.monotonic() + _LINGER_S
    while fleet.unanswered and time.monotonic() < ends:
        for agent in fleet.agents:
            fleet.deliver(agent)
        fleet.wait(time.monotonic() + _LOOK_S)
    fleet.close()
    return {
        'reports': [
            (round(at - began, 3), round(ms, 2)) for at, ms in fleet.found
        ],
        'timeouts': sum(agent.timeouts for agent in fleet.agents),
        'failed': sum(
            agent.unanswered + agent.problems.total() for agent in fleet.agents
        ),
        'problems': sum(
            (agent.problems for agent in fleet.agents), collections.Counter()
        ).most_common(5),
    }


if __name__ == '__main__':
    print(json.dumps(run(Task(**json.loads(sys.argv[1])))))
