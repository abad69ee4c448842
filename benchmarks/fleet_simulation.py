# SPDX-License-Identifier: Apache-2.0

"""Simulated agents in processes of their own, for benchmarks of collectors."""

from collections.abc import Sequence
import dataclasses
import json
import math
import subprocess
import sys
import time
import types
import typing as ty

from benchmarks import fleet_agents
from benchmarks import frame
from vsched_api.db import session as db
from vsched_api.operations import host_keys
from vsched_api.tests import database_options
from vsched_standalone.tests import deployment

#: How much longer than planned the agents may take, in seconds: some wait for
#: answers.
_LATE_S = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How many agents report, and for how long.

    :param agents: a multiple of ``processes``.
    :param processes: that they are divided among.
    :param instances: of each agent.
    :param interval_s: between two reports of an agent.
    :param seconds: for which reports are sent.
    """

    agents: int
    processes: int
    instances: int
    interval_s: float
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What became of the reports.

    :param reports: when each was due, in seconds since the start, and its
        latency in ms; by the time when they were due.
    :param failed: how many were not answered, or answered wrong.
    :param timeouts: calls without an answer in time, which were repeated.
    :param problems: the commonest ones, with their numbers.
    """

    reports: Sequence[tuple[float, float]]
    failed: int
    timeouts: int
    problems: Sequence[str]

    def latencies_ms(self, start_s: float = 0.0) -> list[float]:
        """Return the latencies in ascending order.

        :param start_s: reports that were due earlier are left out.
        """
        return sorted(ms for at, ms in self.reports if at >= start_s)


class Agents:
    """The agents, to be used in a ``with`` statement, which starts them.

    :param transport_url: of the broker.
    :param master: the master key, in hexadecimal digits.
    """

    def __init__(self, transport_url: str, master: str, size: Size) -> None:
        self._size = size
        each = size.agents // size.processes
        self._tasks = [
            fleet_agents.Task(
                transport_url,
                each * number,
                each,
                size.instances,
                size.interval_s,
                size.seconds,
                master,
            )
            for number in range(size.processes)
        ]
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> ty.Self:
        try:
            for task in self._tasks:
                self._running.append(_start(task))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._end()

    @property
    def pids(self) -> tuple[int, ...]:
        """Their processes."""
        return tuple(one.pid for one in self._running)

    def wait(self) -> Found:
        """Return what they found, when all reports are sent and answered."""
        found = [
            json.loads(
                one.communicate(timeout=self._size.seconds + _LATE_S)[0]
            )
            for one in self._running
        ]
        return Found(
            sorted((at, ms) for one in found for at, ms in one['reports']),
            sum(one['failed'] for one in found),
            sum(one['timeouts'] for one in found),
            [
                '%d x %s' % (count, text)
                for one in found
                for text, count in one['problems']
            ],
        )

    def _end(self) -> None:
        for one in self._running:
            if one.poll() is None:
                one.kill()
                one.communicate()


def _start(task: fleet_agents.Task) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (
            sys.executable,
            '-W',
            'ignore',
            '-m',
            'benchmarks.fleet_agents',
            json.dumps(dataclasses.asdict(task)),
        ),
        stdout=subprocess.PIPE,
        text=True,
        cwd=frame.ROOT,
    )


def issue_keys(services: deployment.Deployment, agents: int) -> str:
    """Let agents send reports.

    :returns: the master key, in hexadecimal digits.
    """
    conf = database_options.configuration(services.connection)
    database = db.Database(conf)
    try:
        for number in range(agents):
            host_keys.issue(database, fleet_agents.name(number), time.time())
    finally:
        database.dispose()
    with open(services.master_key_file, encoding='ascii') as file:
        return file.readline().strip()


def quantile(ordered: Sequence[float], part: float) -> float:
    """Return the smallest value that at least a part is not above."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def quantiles(ordered: Sequence[float]) -> dict[str, float]:
    """Return the usual quantiles of values in ascending order."""
    return {
        name: quantile(ordered, part)
        for name, part in (
            ('p50', 0.5),
            ('p95', 0.95),
            ('p99', 0.99),
            ('max', 1),
        )
    }
