# SPDX-License-Identifier: Apache-2.0

"""Exact CPU clocks of other processes' threads.

For a running thread of another process, procfs and clock_gettime(2) are as old
as its CPU's last tick. A perf event's clock is read on the CPU
that runs the thread: perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK.
"""

from collections.abc import Iterable
import os
import struct
import time

from oslo_privsep import capabilities

from vsched_agent.privileged import context
from vsched_agent.privileged import perf_events

perf_pctxt = context.Context(
    'perf_pctxt',
    __name__,
    'vsched_perf_privileged',
    [capabilities.CAP_PERFMON],
)

#: Most threads watched at once.
MOST = 1024

_COUNT = struct.Struct('=Q')

#: A read that took longer was interrupted between the two clocks, in
#: nanoseconds; it is repeated.
_QUICK_NS = 20_000
_TRIES = 10

_open: dict[int, int] = {}


@perf_pctxt.entrypoint
def open_clocks(tids: Iterable[int]) -> dict[int, int]:
    """Start to watch threads.

    :returns: by thread, 0 or the kernel's errno; EPERM for threads that
        vsched does not own.
    :raises ValueError: above :data:`MOST`.
    """
    return perf_events.open_each(_open, tids, MOST, _clock)


@perf_pctxt.entrypoint
def read_clocks(tids: Iterable[int]) -> list[tuple[int, int]]:
    """Read clocks, each with the time of the read.

    :param tids: watched threads.
    :returns: (steady clock, CPU time since it is watched), in nanoseconds.
    :raises KeyError: for one that is not watched.
    """
    return [_read(_open[tid]) for tid in tids]


@perf_pctxt.entrypoint
def close_clocks(tids: Iterable[int]) -> None:
    """Stop watching threads."""
    for tid in tids:
        descriptor = _open.pop(tid, None)
        if descriptor is not None:
            os.close(descriptor)


def _clock(tid: int) -> int:
    return perf_events.open_event(
        perf_events.attr(perf_events.TASK_CLOCK), tid
    )


def _read(descriptor: int) -> tuple[int, int]:
    found, shortest_ns = (0, 0), 0
    for attempt in range(_TRIES):
        before_ns = time.monotonic_ns()
        (ran_ns,) = _COUNT.unpack(os.read(descriptor, _COUNT.size))
        after_ns = time.monotonic_ns()
        took_ns = after_ns - before_ns
        if not attempt or took_ns < shortest_ns:
            found = (before_ns + after_ns) // 2, ran_ns
            shortest_ns = took_ns
        if took_ns <= _QUICK_NS:
            break
    return found
