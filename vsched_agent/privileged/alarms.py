# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Being woken when a thread of another process has run for so long.

The kernel's timer of a sampled task clock runs only while its thread does
(perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK): nobody is woken for a thread
that sleeps, waits or is throttled, and for one that runs at the very time.
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
_IOC_PERIOD = (0x80082404 if platform.machine().startswith('ppc')
               else 0x40082404)


class _Alarm(ty.NamedTuple):
    descriptor: int
    #: The kernel wakes nobody without one. Nobody reads it, and mapped for
    #: reading alone it is written over and never full.
    ring: mmap.mmap

    def close(self) -> None:
        self.ring.close()
        os.close(self.descriptor)


class Alarms:
    """One alarm a thread. :meth:`wait` alone may be called beside others."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._alarms: dict[int, _Alarm] = {}
        self._tids: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._alarms)

    def __contains__(self, tid: int) -> bool:
        return tid in self._alarms

    def add(self, tid: int, event: int) -> None:
        """Be woken by a thread's event.

        :param event: its descriptor, as
            :func:`vsched_agent.privileged.lending.lend` opens it; it is
            closed with the alarm, or at once when this fails.
        :raises OSError: when the kernel has no room.
        """
        self.drop(tid)
        try:
            alarm = _Alarm(event, mmap.mmap(
                event, 2 * mmap.PAGESIZE, prot=mmap.PROT_READ))
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
        """Have it go off when the thread has run for so long from now on.

        :raises KeyError: for a thread that has none.
        :raises OSError: when the kernel does not take it.
        """
        fcntl.ioctl(self._alarms[tid].descriptor, _IOC_PERIOD,
                    _PERIOD.pack(run_ns))

    def drop(self, tid: int) -> None:
        """A thread's alarm goes off no more; none is none."""
        alarm = self._alarms.pop(tid, None)
        if alarm is not None:
            del self._tids[alarm.descriptor]
            # The ring holds the event as well, so that closing it here does
            # not take it from whom polls.
            self._poll.unregister(alarm.descriptor)
            alarm.close()

    def wait(self, timeout_s: float) -> list[tuple[int, int]]:
        """Until an alarm goes off, or a thread that has one ends.

        :returns: for :meth:`whose`.
        """
        return self._poll.poll(max(0.0, timeout_s))

    def whose(self, rung: Iterable[tuple[int, int]]) -> list[int]:
        """The threads whose alarms went off.

        One that has ended is among them and has no alarm any more; those
        dropped are left out.
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
