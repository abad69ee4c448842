# SPDX-License-Identifier: Apache-2.0

"""Reads the kernel's scheduler counters of threads at little cost.

The kernel counts, for every thread, the time it ran, the time it was
runnable but did not, and how often it began to run
(``/proc/PID/task/TID/schedstat``, in nanoseconds; see
Documentation/scheduler/sched-stats.rst). The counters only grow, so a late
pass loses nothing: its interval is longer.
"""

from collections.abc import Iterable
import contextlib
import dataclasses
import os
import resource
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import base
from vsched_agent.host import schedstat
from vsched_agent.hypervisor import qemu_process

LOG = logging.getLogger(__name__)

# Counters are unsigned numbers of 64 bits.
_WRAP = 1 << 64


class Snapshot(ty.NamedTuple):
    """The counters of a thread at one moment."""

    tid: int
    start_ticks: int
    run_ns: int
    wait_ns: int
    timeslices: int


@dataclasses.dataclass(slots=True)
class Thread:
    """One thread and its counters at the last reading.

    :param start_ticks: when the thread started; distinguishes it from a
        later one of the same number.
    :param fd: its counters' file, kept open; None when too many are.
    :param text: the file's last content; None before it was read.
    """

    pid: int
    tid: int
    start_ticks: int
    role: base.Role = base.Role.OTHER
    fd: int | None = None
    text: bytes | None = None
    run_ns: int = 0
    wait_ns: int = 0
    timeslices: int = 0

    def use(self) -> base.ThreadUse:
        """Return its CPU use since its start."""
        return base.ThreadUse(
            self.tid, self.role, self.run_ns, self.wait_ns, self.timeslices
        )

    def snapshot(self) -> Snapshot:
        """Return its counters of the last reading."""
        return Snapshot(
            self.tid,
            self.start_ticks,
            self.run_ns,
            self.wait_ns,
            self.timeslices,
        )

    def since(self, past: Snapshot) -> base.ThreadUse:
        """Return its CPU use from a snapshot to the last reading."""
        return base.ThreadUse(
            self.tid,
            self.role,
            grown(past.run_ns, self.run_ns),
            grown(past.wait_ns, self.wait_ns),
            grown(past.timeslices, self.timeslices),
        )


class ThreadFiles:
    """Reads counters, and keeps their files open.

    :param most: most files kept open between passes; half of the process's
        limit when None. For other threads the file is opened each time, at
        a few times the cost.
    :param proc: where procfs is.
    """

    def __init__(self, most: int | None = None, proc: str = '/proc') -> None:
        if most is None:
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            most = 65536 if soft < 0 else soft // 2
        self.most = most
        self.open = 0
        self._proc = proc

    def add(self, pid: int, tid: int, role: base.Role) -> Thread | None:
        """Open and read a new thread's counters; None if it has ended."""
        ticks = qemu_process.start_ticks(pid, tid, self._proc)
        if ticks is None:
            return None
        thread = Thread(pid, tid, ticks, role)
        if self.open < self.most:
            # Without an open file it is read like those beyond the limit.
            with contextlib.suppress(OSError):
                thread.fd = os.open(
                    self._path(thread), os.O_RDONLY | os.O_CLOEXEC
                )
                self.open += 1
        # Another thread may have got the number before the file was opened.
        if (
            self.advance(thread) is None
            or qemu_process.start_ticks(pid, tid, self._proc) != ticks
        ):
            self.forget((thread,))
            return None
        return thread

    def advance(self, thread: Thread) -> base.ThreadUse | None:
        """Return a thread's CPU use since the last reading.

        None when it has ended.
        """
        text = self._text(thread)
        if text is None:
            return None
        if text == thread.text:
            return base.ThreadUse(thread.tid, thread.role, 0, 0, 0)
        try:
            run_ns, wait_ns, timeslices = schedstat.parse(text)
        except ValueError:
            LOG.error('%s has invalid content: %r', self._path(thread), text)
            return None
        use = base.ThreadUse(
            thread.tid,
            thread.role,
            grown(thread.run_ns, run_ns),
            grown(thread.wait_ns, wait_ns),
            grown(thread.timeslices, timeslices),
        )
        thread.text = text
        thread.run_ns, thread.wait_ns = run_ns, wait_ns
        thread.timeslices = timeslices
        return use

    def forget(self, threads: Iterable[Thread]) -> None:
        """Close the files of threads."""
        for thread in threads:
            if thread.fd is not None:
                os.close(thread.fd)
                thread.fd = None
                self.open -= 1

    def _text(self, thread: Thread) -> bytes | None:
        try:
            if thread.fd is not None:
                # An open file stays with its thread: this fails when the
                # thread has ended, even if its number is in use again.
                return os.pread(thread.fd, schedstat.ROOM_BYTES, 0)
            if (
                qemu_process.start_ticks(thread.pid, thread.tid, self._proc)
                != thread.start_ticks
            ):
                return None
            with open(self._path(thread), 'rb') as file:
                return file.read(schedstat.ROOM_BYTES)
        except OSError:
            # ESRCH, ENOENT: ended between its listing and now.
            return None

    def _path(self, thread: Thread) -> str:
        return '%s/%d/task/%d/schedstat' % (self._proc, thread.pid, thread.tid)


def grown(before: int, now: int) -> int:
    """Return the growth of a counter of 64 bits, across its wrap.

    A step back by less than half of its range is no wrap and counts as 0.
    """
    delta = (now - before) % _WRAP
    return delta if delta < _WRAP // 2 else 0
