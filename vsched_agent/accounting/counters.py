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

"""The kernel's counters of threads, read often and at little cost.

The kernel counts, for every thread, the time it ran, the time it was
runnable but did not, and how often it began to run
(``/proc/PID/task/TID/schedstat``, in nanoseconds; see
Documentation/scheduler/sched-stats.rst). The counters only grow, so a pass
that comes late loses nothing: its interval is longer.
"""

from collections.abc import Iterable
import contextlib
import dataclasses
import os
import resource

from oslo_log import log as logging

from vsched_agent.accounting import readings
from vsched_agent.hypervisor import qemu_process

LOG = logging.getLogger(__name__)

# Counters are unsigned numbers of 64 bits.
_WRAP = 1 << 64
_READ_BYTES = 128


@dataclasses.dataclass(slots=True)
class Thread:
    """One thread and where its counters stood.

    :param start_ticks: when the thread started, so that a later one of the
        same number is not taken for it.
    :param fd: its counters' file, kept open; None when too many are.
    :param text: what the file held; None before it was read.
    """

    pid: int
    tid: int
    start_ticks: int
    role: readings.Role = readings.Role.OTHER
    fd: int | None = None
    text: bytes | None = None
    run_ns: int = 0
    wait_ns: int = 0
    timeslices: int = 0

    def use(self) -> readings.ThreadUse:
        """All that it did since its birth."""
        return readings.ThreadUse(
            self.tid, self.role, self.run_ns, self.wait_ns, self.timeslices)


class ThreadFiles:
    """Reads counters, and keeps their files open.

    :param most: files kept open between passes at most; half of what the
        process may open when None. Threads beyond that are read by opening
        their file each time, at a few times the cost.
    :param proc: where procfs is.
    """

    def __init__(self, most: int | None = None,
                 proc: str = '/proc') -> None:
        if most is None:
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            most = 65536 if soft < 0 else soft // 2
        self.most = most
        self.open = 0
        self._proc = proc

    def meet(self, pid: int, tid: int, role: readings.Role) -> Thread | None:
        """Look at a thread that was not known; None when it is gone."""
        ticks = qemu_process.start_ticks(pid, tid, self._proc)
        if ticks is None:
            return None
        thread = Thread(pid, tid, ticks, role)
        if self.open < self.most:
            # Without a file of its own it is read like those beyond the
            # bound.
            with contextlib.suppress(OSError):
                thread.fd = os.open(
                    self._path(thread), os.O_RDONLY | os.O_CLOEXEC)
                self.open += 1
        # The number may have gone to another thread before the file was
        # opened.
        if self.advance(thread) is None or qemu_process.start_ticks(
                pid, tid, self._proc) != ticks:
            self.forget((thread,))
            return None
        return thread

    def advance(self, thread: Thread) -> readings.ThreadUse | None:
        """What a thread did since it was last read; None when it has ended."""
        text = self._text(thread)
        if text is None:
            return None
        if text == thread.text:
            return readings.ThreadUse(thread.tid, thread.role, 0, 0, 0)
        try:
            run, wait, slices = text.split()
            run_ns, wait_ns, timeslices = int(run), int(wait), int(slices)
        except ValueError:
            LOG.error('%s holds %r', self._path(thread), text)
            return None
        use = readings.ThreadUse(
            thread.tid, thread.role, grown(thread.run_ns, run_ns),
            grown(thread.wait_ns, wait_ns),
            grown(thread.timeslices, timeslices))
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
                # An open file stays with its thread: when that has ended
                # this fails, whoever has its number by then.
                return os.pread(thread.fd, _READ_BYTES, 0)
            if qemu_process.start_ticks(
                    thread.pid, thread.tid,
                    self._proc) != thread.start_ticks:
                return None
            with open(self._path(thread), 'rb') as file:
                return file.read(_READ_BYTES)
        except OSError:
            # ESRCH, ENOENT: ended between its listing and now.
            return None

    def _path(self, thread: Thread) -> str:
        return '%s/%d/task/%d/schedstat' % (
            self._proc, thread.pid, thread.tid)


def grown(before: int, now: int) -> int:
    """How far a counter of 64 bits got, across its wrap.

    A step back by less than half of its range is no wrap, and counts as
    none.
    """
    delta = (now - before) % _WRAP
    return delta if delta < _WRAP // 2 else 0
