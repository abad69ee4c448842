# SPDX-License-Identifier: Apache-2.0

"""What a thread did, second by second, from its switches and counters.

A thread that is not on a CPU sleeps, or it is kept waiting: its budget is
used up, or another goes first. Switches say when it ran, the scheduler's
counter how long it waited, so what is left is sleep, and nothing of it is
as old as a tick: the counter of waits is complete whenever the thread has
just begun to run.
"""

import bisect
from collections.abc import Sequence
import typing as ty

from vsched_agent.profiling.error import sampler


class Look(ty.NamedTuple):
    """One look at a thread.

    :param at_ns: steady clock.
    :param ran_ns: CPU time it was charged, as of the last tick.
    :param waited_ns: in waits that have ended.
    :param switches: since the last look, see
        :func:`vsched_agent.privileged.switches.read_switches`.
    """

    at_ns: int
    ran_ns: int
    waited_ns: int
    switches: Sequence[tuple[int, bool]]


def eager(looks: Sequence[Look], free_ns: int) -> list[sampler.Window]:
    """The seconds in which a thread wanted all that it was promised.

    A thread that sleeps, in a second and the one after it together, no
    longer than its reservation leaves free in one single period could have
    used its budget in every period. (A constant bandwidth server that wakes
    up in mid-period keeps what is left of its budget: Abeni and Buttazzo,
    RTSS 1998.)

    What it got is the scheduler's figure over all seconds together, divided
    as the switches say: those count time that was stolen from the host.

    :param looks: one after the other.
    :param free_ns: period less runtime.
    :returns: a window for each of those seconds, the last one left out.
    """
    switches = [one for look in looks for one in look.switches]
    if switches and not switches[0][1]:
        # It ran when it was met.
        switches.insert(0, (min(looks[0].at_ns, switches[0][0]), True))
    line = _Line(switches)
    slept = [
        _slept_ns(line, before, after)
        for before, after in zip(looks, looks[1:], strict=False)
    ]
    found = [
        sampler.Window(
            after.at_ns - before.at_ns, line.ran_ns(before.at_ns, after.at_ns)
        )
        for before, after, here, then in zip(
            looks, looks[1:], slept, slept[1:], strict=False
        )
        if here is not None and then is not None and here + then <= free_ns
    ]
    if not found:
        return found
    start, end = looks[0], looks[-1]
    return sampler.scaled(
        found, end.ran_ns - start.ran_ns, line.ran_ns(start.at_ns, end.at_ns)
    )


class _Line:
    """When a thread ran."""

    def __init__(self, switches: Sequence[tuple[int, bool]]) -> None:
        self._times_ns = [at_ns for at_ns, _ in switches]
        self._runs = [runs for _, runs in switches]
        # What it ran up to each switch.
        self._ran_ns: list[int] = []
        total_ns = 0
        since_ns: int | None = None
        for at_ns, runs in switches:
            if not runs and since_ns is not None:
                total_ns += at_ns - since_ns
            since_ns = at_ns if runs else None
            self._ran_ns.append(total_ns)

    def began_ns(self, at_ns: int) -> int | None:
        """When it last began to run, not after a time; None if unknown."""
        place = bisect.bisect_right(self._times_ns, at_ns) - 1
        while place >= 0 and not self._runs[place]:
            place -= 1
        return self._times_ns[place] if place >= 0 else None

    def ran_ns(self, start_ns: int, end_ns: int) -> int:
        """What it ran between two times."""
        return self._until(end_ns) - self._until(start_ns)

    def runs(self, at_ns: int) -> bool:
        """Whether it ran at a time."""
        place = bisect.bisect_right(self._times_ns, at_ns) - 1
        return place >= 0 and self._runs[place]

    def _until(self, at_ns: int) -> int:
        place = bisect.bisect_right(self._times_ns, at_ns) - 1
        if place < 0:
            return 0
        ran_ns = self._ran_ns[place]
        if self._runs[place]:
            ran_ns += at_ns - self._times_ns[place]
        return ran_ns


def _slept_ns(line: _Line, before: Look, after: Look) -> int | None:
    """How long it slept between its last beginnings before two looks.

    :returns: None when it is not known.
    """
    start_ns, end_ns = line.began_ns(before.at_ns), line.began_ns(after.at_ns)
    if start_ns is None or end_ns is None:
        return None
    if start_ns == end_ns:
        return 0 if line.runs(after.at_ns) else None
    return (
        end_ns
        - start_ns
        - line.ran_ns(start_ns, end_ns)
        - (after.waited_ns - before.waited_ns)
    )
