# SPDX-License-Identifier: Apache-2.0

"""Reservations given, changed and taken back, again and again."""

import contextlib
import dataclasses
import itertools
import re
import tempfile
import time
import typing as ty

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import messages

State = messages.State

#: (runtime, period) in us of each step but the last, which takes it back.
STEPS = ((12_000, 20_000), (6_000, 20_000))

_HEARTBEAT = re.compile(rb'vsched-heartbeat (\d+) ([0-9.]+)\r?\n')


class NotAsAsked(Exception):
    """A step did not end as it had to."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """What came of it.

    :param cycles: how often a reservation was given, changed and taken.
    :param admissible_before_units: what the kernel admitted before the
        first, 2**-20 CPU.
    :param admissible_after_units: after the last, while the guest runs on.
    :param leaked_units: the difference.
    :param longest_standstill_s: largest step between two of the guest's
        heartbeats, of which it sends one every 0.1 s.
    :param median_heartbeat_s: the middle one, for comparison.
    :param heartbeats: how many there were.
    :param stolen_s: CPU time that the machine under this one took
        meanwhile; the guest stands still then, whatever vsched does.
    :param seconds: how long it took.
    """

    cycles: int
    admissible_before_units: int
    admissible_after_units: int
    leaked_units: int
    longest_standstill_s: float
    median_heartbeat_s: float
    heartbeats: int
    stolen_s: float
    seconds: float


def measure(load: str, cycles: int) -> Figures:
    """Run them on one guest, over the agent's overrides.

    :param load: what the guest does: see tools/guest/init.
    :raises NotAsAsked: when the kernel holds anything but what was asked
        for, or the guest was not left as it was found.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        vm = agent_guests.Vm(folder, load, heartbeat=True)
        stack.enter_context(vm)
        before = agent_case.HostState.look().admissible_units
        found = vm.found()
        agent = stack.enter_context(agent_fixture.RunningAgent())
        began, stolen_s = time.monotonic(), agent_guests.stolen_s()
        first = len(heartbeats(vm))
        for number in range(cycles):
            for runtime_us, period_us in STEPS:
                _reserve(agent, vm, runtime_us, period_us, number)
            _release(agent, vm, found, number)
        # The last stand-still may not be over.
        agent_guests.pause(1.0)
        seconds = time.monotonic() - began
        stolen_s = agent_guests.stolen_s() - stolen_s
        after = _settled(before)
        uptimes = heartbeats(vm)[max(0, first - 1) :]
    steps = sorted(
        later - earlier for earlier, later in itertools.pairwise(uptimes)
    )
    if not steps:
        raise NotAsAsked('the guest has no heartbeat')
    return Figures(
        cycles,
        before,
        after,
        before - after,
        round(steps[-1], 3),
        round(steps[len(steps) // 2], 3),
        len(steps),
        round(stolen_s, 2),
        round(seconds, 1),
    )


def heartbeats(vm: agent_guests.Vm) -> list[float]:
    """The guest's uptime at each of its heartbeats, in seconds."""
    return [float(uptime) for _, uptime in _HEARTBEAT.findall(vm.console())]


def _reserve(
    agent: agent_fixture.RunningAgent,
    vm: agent_guests.Vm,
    runtime_us: int,
    period_us: int,
    number: int,
) -> None:
    mark = agent.collector.mark()
    agent.override(vm.uuid, runtime_us, period_us)
    agent.await_said(
        vm.uuid,
        mark,
        state=State.APPLIED,
        generation=agent.collector.generation,
    )
    held = vm.held()
    if held != [(runtime_us, period_us)]:
        raise NotAsAsked(
            'cycle %d: %s instead of %s'
            % (number, held, (runtime_us, period_us))
        )


def _release(
    agent: agent_fixture.RunningAgent,
    vm: agent_guests.Vm,
    found: list[ty.Any],
    number: int,
) -> None:
    mark = agent.collector.mark()
    agent.end_override(vm.uuid)
    agent.await_said(vm.uuid, mark, state=State.RELEASED)
    if vm.found() != found:
        raise NotAsAsked(
            'cycle %d: found %s, left %s' % (number, found, vm.found())
        )


def _settled(expected_units: int, patience_s: float = 60.0) -> int:
    # Bandwidth is free again up to a period after a thread has left.
    give_up = time.monotonic() + patience_s
    while True:
        units = agent_case.HostState.look().admissible_units
        if units == expected_units or time.monotonic() > give_up:
            return units
        agent_guests.pause(0.1)
