# SPDX-License-Identifier: Apache-2.0

"""Random work in guests, so that contention comes and goes."""

from collections.abc import Iterator
from collections.abc import Sequence
import random
import typing as ty

import libvirt

from benchmarks import balloon
from vsched_agent.tests.functional import agent_guests

#: Means of turns, and the longest and shortest, all in seconds. Some are too
#: short for anybody to act, some long enough for a whole trial.
_BUSY_S, _QUIET_S = 20.0, 10.0
_LEAST_S, _MOST_S = 1.0, 90.0
#: More than any turn has time for.
_ENDLESS = 1_000_000_000
_THREADS = 4
_END = 'killall vsched-work 2>/dev/null'


class Turn(ty.NamedTuple):
    """What a guest does for a while.

    :param kind: of its work; None for none.
    """

    kind: str | None
    seconds: float


def turns(seed: str) -> Iterator[Turn]:
    """Work and rest for ever, the same ones for the same seed."""
    dice = random.Random(seed)
    kinds = sorted(balloon.KINDS)
    while True:
        yield Turn(dice.choice(kinds), _length_s(dice, _BUSY_S))
        yield Turn(None, _length_s(dice, _QUIET_S))


def _length_s(dice: random.Random, mean_s: float) -> float:
    return min(_MOST_S, max(_LEAST_S, dice.expovariate(1 / mean_s)))


class Flapping:
    """Has each guest take its turns.

    :param guests: each with turns of its own.
    :ivar begun: turns of work that were begun, by guest.
    :ivar late: how often a guest did not take a command in time.
    """

    def __init__(self, guests: Sequence[agent_guests.Vm]) -> None:
        self._guests = guests
        self._plans = [
            turns('guest %d' % number) for number in range(len(guests))
        ]
        self._next = [next(plan) for plan in self._plans]
        self._due_s = [0.0] * len(guests)
        self.begun = [0] * len(guests)
        self.late = 0

    def turn(self, now_s: float) -> None:
        """Begin what is due."""
        for number, one in enumerate(self._guests):
            if now_s < self._due_s[number]:
                continue
            turn = self._next[number]
            command = (
                _END
                if turn.kind is None
                else (
                    '%s; exec vsched-work %s %d %d >/dev/null 2>&1'
                    % (_END, turn.kind, _THREADS, _ENDLESS)
                )
            )
            try:
                one.execute('/bin/sh', '-c', command, patience_s=0.0)
            except libvirt.libvirtError:
                # It may just be busy with what the agent wants of it. The
                # next look tries again.
                self.late += 1
                continue
            self.begun[number] += turn.kind is not None
            self._due_s[number] = now_s + turn.seconds
            self._next[number] = next(self._plans[number])

    def stop(self) -> None:
        """Let every guest rest, if it takes the command."""
        for one in self._guests:
            try:
                one.execute('/bin/sh', '-c', _END)
            except libvirt.libvirtError:
                self.late += 1
