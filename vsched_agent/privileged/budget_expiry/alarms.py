# SPDX-License-Identifier: Apache-2.0

"""Notify when a thread of another process has run for a given time.

The kernel's timer of a sampled task clock advances only while its thread runs
(perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK): a thread that sleeps, waits or
is throttled causes no wakeup, a running thread causes it without delay.
"""

from collections.abc import Iterable
import fcntl
import mmap
import os
import platform
import select
import struct
import typing as ty

_PERIOD = struct.Struct('=Q')
#: PERF_EVENT_IOC_PERIOD, which is _IOW('$', 4, __u64).
_IOC_PERIOD = (
    0x80082404 if platform.machine().startswith('ppc') else 0x40082404
)


class _Alarm(ty.NamedTuple):
    descriptor: int
    #: Required for wakeups. It is not read; mapped read-only, the kernel
    #: overwrites it and it is never full.
    ring: mmap.mmap

    def close(self) -> None:
        self.ring.close()
        os.close(self.descriptor)


class Alarms:
    """One alarm per thread. Only :meth:`wait` may run concurrently."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._alarms: dict[int, _Alarm] = {}
        self._tids: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._alarms)

    def __contains__(self, tid: int) -> bool:
        return tid in self._alarms

    def add(self, tid: int, event: int) -> None:
        """Add a thread's event.

        :param event: its descriptor, as
            :func:`vsched_agent.privileged.budget_expiry.lending.lend` opens
            it; closed with the alarm, or at once when this fails.
        :raises OSError: when the kernel has no memory for it.
        """
        self.drop(tid)
        try:
            alarm = _Alarm(
                event, mmap.mmap(event, 2 * mmap.PAGESIZE, prot=mmap.PROT_READ)
            )
        except BaseException:
            os.close(event)
            raise
        try:
            self._poll.register(event, select.EPOLLIN)
        except BaseException:
            alarm.close()
            raise
        self._alarms[tid] = alarm
        self._tids[event] = tid

    def set(self, tid: int, run_ns: int) -> None:
        """Set the CPU time after which the alarm goes off.

        :param run_ns: counted from now.
        :raises KeyError: when the thread has no alarm.
        :raises OSError: when the kernel refuses it.
        """
        fcntl.ioctl(
            self._alarms[tid].descriptor, _IOC_PERIOD, _PERIOD.pack(run_ns)
        )

    def drop(self, tid: int) -> None:
        """Remove a thread's alarm, if it has one."""
        alarm = self._alarms.pop(tid, None)
        if alarm is not None:
            del self._tids[alarm.descriptor]
            # The ring also references the event, so closing the descriptor
            # alone would leave it in the epoll set.
            self._poll.unregister(alarm.descriptor)
            alarm.close()

    def wait(self, timeout_s: float) -> list[tuple[int, int]]:
        """Wait until an alarm goes off or a thread with an alarm ends.

        :returns: the events, for :meth:`threads_of`.
        """
        return self._poll.poll(max(0.0, timeout_s))

    def threads_of(self, rung: Iterable[tuple[int, int]]) -> list[int]:
        """Return the threads whose alarms went off.

        A thread that has ended is included and loses its alarm; threads whose
        alarm was dropped are left out.
        """
        found = []
        for descriptor, events in rung:
            tid = self._tids.get(descriptor)
            if tid is None:
                continue
            found.append(tid)
            if events & select.EPOLLHUP:
                self.drop(tid)
        return found
