# SPDX-License-Identifier: Apache-2.0

"""Counts how often threads sleep, from ``/proc/TID/status``.

A timeslice also ends when a thread is preempted or has exhausted its budget.
A voluntary context switch does not: the CPU time between two of them is what
the thread needed for what it was woken for.
"""

from collections.abc import Collection
import os

_FIELD = b'\nvoluntary_ctxt_switches:'
#: The field is near the end; some fields before it grow with the CPUs.
_ROOM_BYTES = 16_384


def voluntary(tid: int, proc: str = '/proc') -> int:
    """Return how often a thread has slept since its start.

    :param tid: its number; a process's is its first thread's.
    :raises OSError: when it has ended or cannot be read.
    """
    descriptor = os.open(
        '%s/%d/status' % (proc, tid), os.O_RDONLY | os.O_CLOEXEC
    )
    try:
        text = os.read(descriptor, _ROOM_BYTES)
    finally:
        os.close(descriptor)
    _, found, rest = text.partition(_FIELD)
    if not found:
        raise OSError('thread %d: no context switches in its status' % tid)
    return int(rest.split(b'\n', 1)[0])


class SleepCounter:
    """Counts how often threads slept between two passes.

    :param proc: where procfs is.
    """

    def __init__(self, proc: str = '/proc') -> None:
        self._proc = proc
        self._last: dict[int, int] = {}

    def since(self, tids: Collection[int]) -> dict[int, int]:
        """Return how often threads slept since the last call.

        Threads that were not in the last call, or have ended, are left out.
        """
        last, self._last = self._last, {}
        found = {}
        for tid in tids:
            try:
                now = voluntary(tid, self._proc)
            except OSError:
                continue
            self._last[tid] = now
            if tid in last and now >= last[tid]:
                found[tid] = now - last[tid]
        return found
