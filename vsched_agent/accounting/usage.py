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

"""CPU time of instances, from the counters of their vCPU threads.

The kernel counts, for every thread, the time it ran and the time it was
runnable but did not (``/proc/PID/task/TID/schedstat``, in nanoseconds; see
Documentation/scheduler/sched-stats.rst). The counters only grow, so a pass
that comes late loses nothing: its interval is longer.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
from fractions import Fraction
import os
import resource
import time

from oslo_log import log as logging

from vsched_agent.accounting import direct as direct_meter
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import qemu_process
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

# Counters are unsigned numbers of 64 bits.
_WRAP = 1 << 64
_READ_BYTES = 128


@dataclasses.dataclass(slots=True)
class _Thread:
    """One vCPU thread and where its counters stood.

    :param start_ticks: when the thread started, so that a later one of the
        same number is not taken for it.
    :param fd: its counters' file, kept open; None when too many are.
    """

    pid: int
    tid: int
    start_ticks: int
    fd: int | None
    run_ns: int
    wait_ns: int


@dataclasses.dataclass(slots=True)
class _Instance:
    """One instance and when it was last read.

    :param pid: its process at that time.
    :param read_ns: on the monotonic clock.
    :param read_ticks: the same moment on the kernel's clock of start times.
    """

    pid: int
    read_ns: int
    read_ticks: int
    threads: dict[int, _Thread]


class UsageMeter:
    """Reads how much CPU time instances got between two passes.

    Used by one thread at a time.

    :param max_open_files: files kept open between passes at most; half of
        what the process may open when None. Threads beyond that are read
        by opening their file each time, at a few times the cost.
    :param proc: where procfs is.
    :param direct: reads what processes use beside their vCPUs.
    """

    def __init__(self, max_open_files: int | None = None,
                 proc: str = '/proc',
                 direct: direct_meter.DirectMeter | None = None) -> None:
        if max_open_files is None:
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            max_open_files = 65536 if soft < 0 else soft // 2
        self._max_open_files = max_open_files
        self._open_files = 0
        self._proc = proc
        self._ticks_per_s = os.sysconf('SC_CLK_TCK')
        self._instances: dict[str, _Instance] = {}
        self._direct = direct or direct_meter.DirectMeter()

    def sample(self, domains: Iterable[base.Domain],
               promised: Mapping[str, Fraction],
               ) -> list[messages.UsageSample]:
        """Read all counters and tell what was used since the last call.

        An instance that is seen for the first time is only read, and is
        told of from the next call on. A vCPU thread that was born since
        the last call counts from its birth; one that was there before but
        not known counts from now, because what it used belongs to no
        interval. What a thread used between the last call and its end is
        not known to anybody.

        :param domains: every running instance.
        :param promised: by instance, the CPUs that it was promised in the
            meantime: ΣQ/P over its vCPUs. Left out: no reservation.
        :returns: a sample for each instance that was read before.
        """
        samples = []
        seen = set()
        for domain in domains:
            seen.add(domain.uuid)
            sample = self._sample(domain, promised.get(domain.uuid))
            if sample is not None:
                samples.append(sample)
        for uuid in self._instances.keys() - seen:
            self._forget(self._instances.pop(uuid).threads.values())
            self._direct.forget(uuid)
        return samples

    def close(self) -> None:
        """Forget everything and close all files."""
        for instance in self._instances.values():
            self._forget(instance.threads.values())
        self._instances.clear()

    def _sample(self, domain: base.Domain, promised: Fraction | None,
                ) -> messages.UsageSample | None:
        instance = self._instances.get(domain.uuid)
        if instance is None:
            now_ns, now_ticks = time.monotonic_ns(), self._now_ticks()
            instance = _Instance(domain.pid, now_ns, now_ticks, {})
            self._instances[domain.uuid] = instance
            self._read(domain, instance, None)
            self._direct.used(domain.uuid, domain.pid, 0)
            return None
        since_ns, since_ticks = instance.read_ns, instance.read_ticks
        if instance.pid != domain.pid:
            # Started anew: all of its threads are other ones.
            self._forget(instance.threads.values())
            instance.threads.clear()
            instance.pid = domain.pid
        instance.read_ns = time.monotonic_ns()
        instance.read_ticks = self._now_ticks()
        run_ns, wait_ns = self._read(domain, instance, since_ticks)
        interval_us = round((instance.read_ns - since_ns) / 1000)
        return messages.UsageSample(
            instance_uuid=domain.uuid,
            at=time.time(),
            interval_us=interval_us,
            guest_us=round(run_ns / 1000),
            wait_us=round(wait_ns / 1000),
            direct_us=round(self._direct.used(
                domain.uuid, domain.pid, run_ns) / 1000),
            promised_us=None if promised is None else round(
                promised * interval_us))

    def _read(self, domain: base.Domain, instance: _Instance,
              since_ticks: int | None) -> tuple[int, int]:
        """What all threads used since their last reading, in nanoseconds.

        :param since_ticks: when the instance was last read; None when it
            never was.
        """
        threads = instance.threads
        run_ns = wait_ns = 0
        for vcpu in domain.vcpus:
            thread = threads.get(vcpu.tid)
            if thread is not None:
                now = self._counters(thread)
                if now is not None:
                    run_ns += _grown(thread.run_ns, now[0])
                    wait_ns += _grown(thread.wait_ns, now[1])
                    thread.run_ns, thread.wait_ns = now
                    continue
                self._forget((threads.pop(vcpu.tid),))
            born = self._meet(domain.pid, vcpu.tid)
            if born is None:
                continue
            threads[vcpu.tid] = born
            if since_ticks is not None and born.start_ticks >= since_ticks:
                run_ns += born.run_ns
                wait_ns += born.wait_ns
        if len(threads) > len(domain.vcpus):
            for tid in threads.keys() - {one.tid for one in domain.vcpus}:
                self._forget((threads.pop(tid),))
        return run_ns, wait_ns

    def _meet(self, pid: int, tid: int) -> _Thread | None:
        """Open a thread that was not known; None when it is gone."""
        ticks = qemu_process.start_ticks(pid, tid, self._proc)
        if ticks is None:
            return None
        thread = _Thread(pid, tid, ticks, None, 0, 0)
        if self._open_files < self._max_open_files:
            # Without a file of its own it is read like those beyond the
            # bound.
            with contextlib.suppress(OSError):
                thread.fd = os.open(
                    self._path(thread), os.O_RDONLY | os.O_CLOEXEC)
                self._open_files += 1
        now = self._counters(thread)
        # The number may have gone to another thread before the file was
        # opened.
        if now is None or qemu_process.start_ticks(
                pid, tid, self._proc) != ticks:
            self._forget((thread,))
            return None
        thread.run_ns, thread.wait_ns = now
        return thread

    def _counters(self, thread: _Thread) -> tuple[int, int] | None:
        """The counters of a thread now; None when it has ended."""
        try:
            if thread.fd is not None:
                # An open file stays with its thread: when that has ended
                # this fails, whoever has its number by then.
                text = os.pread(thread.fd, _READ_BYTES, 0)
            else:
                if qemu_process.start_ticks(
                        thread.pid, thread.tid,
                        self._proc) != thread.start_ticks:
                    return None
                with open(self._path(thread), 'rb') as file:
                    text = file.read(_READ_BYTES)
            run_ns, wait_ns, _ = text.split()
            return int(run_ns), int(wait_ns)
        except OSError:
            # ESRCH, ENOENT: ended between its listing and now.
            return None
        except ValueError:
            LOG.error('%s holds %r', self._path(thread), text)
            return None

    def _forget(self, threads: Iterable[_Thread]) -> None:
        for thread in threads:
            if thread.fd is not None:
                os.close(thread.fd)
                thread.fd = None
                self._open_files -= 1

    def _path(self, thread: _Thread) -> str:
        return '%s/%d/task/%d/schedstat' % (
            self._proc, thread.pid, thread.tid)

    def _now_ticks(self) -> int:
        # Start times count from boot, sleep included.
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) *
                   self._ticks_per_s)


def _grown(before: int, now: int) -> int:
    """How far a counter got, across its wrap.

    A step back by less than half of its range is no wrap, and counts as
    none.
    """
    delta = (now - before) % _WRAP
    return delta if delta < _WRAP // 2 else 0
