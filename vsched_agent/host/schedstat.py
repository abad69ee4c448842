# SPDX-License-Identifier: Apache-2.0

"""Read a thread's counters from ``/proc/TID/schedstat``.

See Documentation/scheduler/sched-stats.rst. The counters of a running thread
are as old as its CPU's last tick.
"""

import errno
import os
import typing as ty

#: Longest text: three numbers of 64 bits and separators.
ROOM_BYTES = 128


class Counters(ty.NamedTuple):
    """A thread's counters since its start; they wrap at 64 bits.

    :param run_ns: CPU time, in nanoseconds.
    :param wait_ns: time runnable but not running, in nanoseconds.
    :param timeslices: how often it started to run.
    """

    run_ns: int
    wait_ns: int
    timeslices: int


def parse(text: bytes) -> tuple[int, int, int]:
    """Parse such a file.

    :returns: the fields of :class:`Counters` as a tuple: accounting parses
        thousands a second, and creating the class takes longer than parsing.
    :raises ValueError: when the text is malformed.
    """
    run, wait, timeslices = text.split()
    return int(run), int(wait), int(timeslices)


def read(tid: int, proc: str = '/proc') -> Counters:
    """Read the counters of a thread.

    :param tid: its number; a process's is its first thread's.
    :param proc: where procfs is mounted.
    :raises ProcessLookupError: when it has ended.
    :raises OSError: when they cannot be read.
    """
    try:
        descriptor = os.open(
            '%s/%d/schedstat' % (proc, tid), os.O_RDONLY | os.O_CLOEXEC
        )
        try:
            return Counters(*parse(os.read(descriptor, ROOM_BYTES)))
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise ProcessLookupError(
            errno.ESRCH, 'thread %d is gone' % tid
        ) from None
