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

"""Instances that are processes of this host: QEMU's.

The time of all threads of a process together comes from its CPU clock
(:mod:`vsched_agent.accounting.direct`) and loses nothing. Its division comes
from the counters of the threads that run now: pool threads come and go.

A process is not listed at each pass. While it has as many threads as when it
was last listed, and each of those still runs, it has the same ones.
"""

from collections.abc import Collection
from collections.abc import Iterator
import dataclasses
import os
import pathlib
import time

from vsched_agent.accounting import counters
from vsched_agent.accounting import direct as direct_meter
from vsched_agent.accounting import readings
from vsched_agent.accounting import vhost
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import qemu_process
from vsched_agent.hypervisor import thread_watch

Role = readings.Role

# Numbers of threads that no process has.
_NEVER, _ANEW = -3, -4


@dataclasses.dataclass(slots=True)
class _Process:
    """One instance's process and when it was last read.

    :param domain: as it was when the threads were listed.
    :param read_ns: on the monotonic clock.
    :param read_ticks: the same moment on the kernel's clock of start times.
    :param threads: its own.
    :param workers: the kernel's threads that work for it.
    :param owes_workers: vhost is open, and none of its own serves it.
    :param listed: how many threads there were when it was listed.
    :param start_ticks: when the process started, as far as is known.
    """

    domain: base.Domain
    read_ns: int
    read_ticks: int
    threads: dict[int, counters.Thread] = dataclasses.field(
        default_factory=dict)
    workers: dict[int, counters.Thread] = dataclasses.field(
        default_factory=dict)
    owes_workers: bool = False
    listed: int = _NEVER
    start_ticks: int = 0

    @property
    def pid(self) -> int:
        return self.domain.pid


class ProcessReader(readings.Reader):
    """Reads processes' threads.

    :param max_open_files: see :class:`counters.ThreadFiles`.
    :param proc: where procfs is.
    :param direct: reads what processes use beside their vCPUs.
    :param own_processes: whether each instance has a process of its own.
        Otherwise only the threads that the domains name are theirs.
    """

    def __init__(self, max_open_files: int | None = None,
                 proc: str = '/proc',
                 direct: direct_meter.DirectMeter | None = None,
                 own_processes: bool = True) -> None:
        self.files = counters.ThreadFiles(max_open_files, proc)
        self._proc = proc
        self._ticks_per_s = os.sysconf('SC_CLK_TCK')
        self._known: dict[str, _Process] = {}
        self._direct = direct or direct_meter.DirectMeter()
        self._kernel_workers = vhost.KernelWorkers(proc)
        self._own_processes = own_processes

    def read(self, domain: base.Domain) -> readings.Reading | None:
        """What an instance's threads did since the last call.

        A thread that was born since then counts from its birth; one that
        was there before but not known counts from now, because what it
        used belongs to no interval. What a vCPU thread used between the
        last call and its end counts as its process's.
        """
        known = self._known.get(domain.uuid)
        since_ns = since_ticks = None
        if known is None:
            known = _Process(domain, 0, 0)
            self._known[domain.uuid] = known
        else:
            since_ns, since_ticks = known.read_ns, known.read_ticks
            if known.pid != domain.pid:
                # Started anew: all of its threads are other ones.
                self._close(known)
                known = _Process(domain, 0, 0)
                self._known[domain.uuid] = known
        known.read_ns = time.monotonic_ns()
        known.read_ticks = self._now_ticks()
        uses = self._uses(domain, known, since_ticks)
        direct_ns = self._direct_ns(domain, known, uses)
        if since_ns is None:
            return None
        return readings.Reading(
            domain.uuid, known.read_ns, known.read_ns - since_ns,
            tuple(uses), direct_ns)

    def keep(self, uuids: Collection[str]) -> None:
        for uuid in self._known.keys() - uuids:
            self._close(self._known.pop(uuid))
            self._direct.forget(uuid)

    def close(self) -> None:
        self.keep(())

    # What its threads did

    def _uses(self, domain: base.Domain, known: _Process,
              since_ticks: int | None) -> list[readings.ThreadUse]:
        newly: list[counters.Thread] = []
        # Asked before they are read: one that comes in between is seen at
        # the next pass, and counts from its birth.
        if known.domain is not domain or known.listed != self._count(domain):
            newly += self._list(domain, known)
        if known.owes_workers:
            newly += self._find_workers(known, False)
        fresh = {one.tid for one in newly}
        uses = []
        ended = False
        for threads in (known.threads, known.workers):
            for thread in list(threads.values()):
                if thread.tid in fresh:
                    continue
                use = self.files.advance(thread)
                if use is None:
                    self.files.forget((threads.pop(thread.tid),))
                    ended = True
                else:
                    uses.append(use)
        if ended:
            newly += self._list(domain, known)
        for thread in newly:
            born = (since_ticks is not None and
                    thread.start_ticks >= since_ticks)
            uses.append(thread.use() if born else readings.ThreadUse(
                thread.tid, thread.role, 0, 0, 0))
        return uses

    def _direct_ns(self, domain: base.Domain, known: _Process,
                   uses: list[readings.ThreadUse]) -> int:
        # Beyond the process's clock.
        beside_ns = sum(use.run_ns for use in uses
                        if use.role is not Role.VCPU and
                        (use.tid in known.workers or not self._own_processes))
        if not self._own_processes:
            return beside_ns
        guest_ns = sum(use.run_ns for use in uses if use.role is Role.VCPU)
        first = known.threads.get(domain.pid)
        if first is not None:
            known.start_ticks = first.start_ticks
        return beside_ns + self._direct.used(
            domain.uuid, domain.pid, guest_ns, known.start_ticks)

    # Which threads it has

    def _count(self, domain: base.Domain) -> int:
        if not self._own_processes:
            return 0
        return thread_watch.count(domain.pid, self._proc)

    def _list(self, domain: base.Domain,
              known: _Process) -> list[counters.Thread]:
        """Find out which threads there are.

        :returns: those that were not known.
        """
        before, known.domain = known.domain, domain
        first = known.listed == _NEVER
        told = dict(self._told(domain))
        tids = qemu_process.tids(
            domain.pid, pathlib.Path(self._proc)
        ) if self._own_processes else told.keys()
        for tid in known.threads.keys() - tids:
            self.files.forget((known.threads.pop(tid),))
        known.listed = len(tids) if self._own_processes else 0
        newly = []
        for tid in sorted(tids):
            thread = known.threads.get(tid)
            role = told.get(tid)
            if role is None and (
                    thread is None or thread.role is Role.OTHER):
                role = self._role(domain.pid, tid)
            if thread is not None:
                thread.role = role or thread.role
                continue
            thread = self.files.meet(domain.pid, tid, role or Role.OTHER)
            if thread is not None:
                known.threads[tid] = thread
                newly.append(thread)
            if thread is None or thread.role is Role.OTHER:
                # Another may have taken its place; or it does not have its
                # name yet.
                known.listed = _ANEW
        if self._own_processes and (
                first or before.interfaces != domain.interfaces):
            known.owes_workers = not any(
                one.role is Role.VHOST for one in known.threads.values()
            ) and vhost.opened(domain.pid, self._proc)
            if known.owes_workers:
                newly += self._find_workers(known, True)
        return newly

    def _find_workers(self, known: _Process,
                      changed: bool) -> list[counters.Thread]:
        newly = []
        for tid in self._kernel_workers.of(known.threads.keys(), changed):
            if tid not in known.workers:
                thread = self.files.meet(tid, tid, Role.VHOST)
                if thread is not None:
                    known.workers[tid] = thread
                    newly.append(thread)
        return newly

    def _told(self, domain: base.Domain) -> Iterator[tuple[int, Role]]:
        """The threads whose role the driver knows."""
        if not self._own_processes:
            # Of a process, names say which of them is what.
            for tid in domain.emulator_tids:
                yield tid, Role.EMULATOR
        for tid in domain.iothread_tids:
            yield tid, Role.IOTHREAD
        for vcpu in domain.vcpus:
            yield vcpu.tid, Role.VCPU

    def _role(self, pid: int, tid: int) -> Role:
        """What a thread does, by its name; nobody has told of it."""
        comm = qemu_process.comm(tid, '%s/%d/task' % (self._proc, pid)) or ''
        if vhost.is_worker(comm):
            return Role.VHOST
        if qemu_process.vcpus_by_comm({tid: comm}):
            return Role.VCPU
        if qemu_process.iothreads_by_comm({tid: comm}):
            return Role.IOTHREAD
        return Role.EMULATOR if tid == pid else Role.OTHER

    def _close(self, known: _Process) -> None:
        self.files.forget(known.threads.values())
        self.files.forget(known.workers.values())

    def _now_ticks(self) -> int:
        # Start times count from boot, sleep included.
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) *
                   self._ticks_per_s)

