# SPDX-License-Identifier: Apache-2.0

"""Reads the threads of QEMU processes.

The sum over a process's threads comes from its CPU clock
(:mod:`vsched_agent.accounting.direct`), which includes ended ones such as
pool threads. Its division comes from the counters of the present threads.

A process's threads are not listed at each pass. While their number is that
of the last listing, and each of those still runs, they are the same ones.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import os
import pathlib
import time
import typing as ty

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import counters
from vsched_agent.accounting import direct as direct_meter
from vsched_agent.accounting import kernel_threads
from vsched_agent.accounting import vhost
from vsched_agent.host import cgroup
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import qemu_process
from vsched_agent.hypervisor import thread_watch

Role = readings.Role

# Numbers of threads that no process has: not listed yet; list again.
_NEVER, _AGAIN = -3, -4


class Past(ty.NamedTuple):
    """An earlier agent's last reading of an instance.

    :param read_ns: see :class:`_Process`, as the next one.
    :param threads: by number.
    """

    read_ns: int
    read_ticks: int
    threads: Mapping[int, counters.Snapshot]


@dataclasses.dataclass(slots=True)
class _Process:
    """One instance's process and when it was last read.

    :param domain: as it was when the threads were listed.
    :param search: for kernel threads that serve it.
    :param read_ns: on the monotonic clock.
    :param read_ticks: the same moment on the kernel's clock of start times.
    :param threads: its own.
    :param workers: kernel threads that serve it.
    :param listed: number of threads at the last listing.
    :param start_ticks: when the process started, if known.
    :param past: of an earlier agent; None once it is used.
    """

    domain: base.Domain
    search: kernel_threads.Search
    read_ns: int = 0
    read_ticks: int = 0
    threads: dict[int, counters.Thread] = dataclasses.field(
        default_factory=dict
    )
    workers: dict[int, counters.Thread] = dataclasses.field(
        default_factory=dict
    )
    listed: int = _NEVER
    start_ticks: int = 0
    past: Past | None = None

    @property
    def pid(self) -> int:
        return self.domain.pid


class ProcessReader(readings.Reader):
    """Reads processes' threads.

    :param max_open_files: see :class:`counters.ThreadFiles`.
    :param proc: where procfs is.
    :param direct: reads what processes use beside their vCPUs.
    """

    def __init__(
        self,
        max_open_files: int | None = None,
        proc: str = '/proc',
        direct: direct_meter.DirectMeter | None = None,
    ) -> None:
        self.files = counters.ThreadFiles(max_open_files, proc)
        self._proc = proc
        self._ticks_per_s = os.sysconf('SC_CLK_TCK')
        self._known: dict[str, _Process] = {}
        self._resumed: dict[str, Past] = {}
        self._direct = direct or direct_meter.DirectMeter()
        self._kernel_threads = kernel_threads.Scanner(proc)

    def read(self, domain: base.Domain) -> readings.Reading | None:
        """Return the CPU use of an instance's threads since the last call.

        A thread that started since then counts from its start. An older
        one that was not known counts from now, because its use belongs to
        no interval. What a vCPU thread used between the last call and its
        end counts as its process's.
        """
        known = self._known.get(domain.uuid)
        since_ns = since_ticks = None
        if known is None:
            known = self._process(domain)
            known.past = self._resumed.pop(domain.uuid, None)
            self._known[domain.uuid] = known
            if known.past is not None:
                since_ns, since_ticks, _ = known.past
        else:
            since_ns, since_ticks = known.read_ns, known.read_ticks
            if known.pid != domain.pid:
                # Restarted: all of its threads are new.
                self._close(known)
                known = self._process(domain)
                self._known[domain.uuid] = known
        known.read_ns = time.monotonic_ns()
        known.read_ticks = self._now_ticks()
        uses = self._uses(domain, known, since_ticks)
        known.past = None
        direct_ns = self._direct_ns(domain, known, uses)
        if since_ns is None:
            return None
        return readings.Reading(
            domain.uuid,
            known.read_ns,
            known.read_ns - since_ns,
            tuple(uses),
            direct_ns,
        )

    def keep(self, uuids: Collection[str]) -> None:
        for uuid in self._known.keys() - uuids:
            self._close(self._known.pop(uuid))
            self._direct.forget(uuid)
        for uuid in self._resumed.keys() - uuids:
            del self._resumed[uuid]

    def close(self) -> None:
        self.keep(())

    def checkpoint(self) -> dict[str, ty.Any]:
        return {
            'instances': {
                uuid: {
                    'read_ns': known.read_ns,
                    'read_ticks': known.read_ticks,
                    'threads': [
                        list(thread.snapshot())
                        for threads in (known.threads, known.workers)
                        for thread in threads.values()
                    ],
                }
                for uuid, known in self._known.items()
            },
            'direct': self._direct.checkpoint(),
        }

    def resume(self, checkpoint: Mapping[str, ty.Any]) -> None:
        resumed = {}
        for uuid, one in checkpoint['instances'].items():
            threads = [
                counters.Snapshot(*map(int, fields))
                for fields in one['threads']
            ]
            resumed[str(uuid)] = Past(
                int(one['read_ns']),
                int(one['read_ticks']),
                {thread.tid: thread for thread in threads},
            )
        self._direct.resume(checkpoint['direct'])
        self._resumed = resumed

    # The threads' CPU use

    def _uses(
        self, domain: base.Domain, known: _Process, since_ticks: int | None
    ) -> list[readings.ThreadUse]:
        newly: list[counters.Thread] = []
        # Listed before they are read: one that starts in between is seen
        # in the next pass, and counts from its start.
        if known.domain is not domain or known.listed != self._count(domain):
            newly += self._list(domain, known)
        if known.search.due:
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
            past = known.past and known.past.threads.get(thread.tid)
            if past and past.start_ticks == thread.start_ticks:
                uses.append(thread.since(past))
            elif since_ticks is not None and (
                thread.start_ticks >= since_ticks
            ):
                uses.append(thread.use())
            else:
                uses.append(
                    readings.ThreadUse(thread.tid, thread.role, 0, 0, 0)
                )
        return uses

    def _direct_ns(
        self,
        domain: base.Domain,
        known: _Process,
        uses: list[readings.ThreadUse],
    ) -> int:
        # Not in the process's clock.
        beside_ns = sum(
            use.run_ns
            for use in uses
            if use.role is not Role.VCPU and use.tid in known.workers
        )
        guest_ns = sum(use.run_ns for use in uses if use.role is Role.VCPU)
        first = known.threads.get(domain.pid)
        if first is not None:
            known.start_ticks = first.start_ticks
        return beside_ns + self._direct.used(
            domain.uuid, domain.pid, guest_ns, known.start_ticks
        )

    # The list of threads

    def _count(self, domain: base.Domain) -> int:
        return thread_watch.count(domain.pid, self._proc)

    def _tids(self, domain: base.Domain) -> Collection[int]:
        return qemu_process.tids(domain.pid, pathlib.Path(self._proc))

    def _list(
        self, domain: base.Domain, known: _Process
    ) -> list[counters.Thread]:
        """List the threads.

        :returns: the new ones.
        """
        before, known.domain = known.domain, domain
        first = known.listed == _NEVER
        roles = dict(self._roles(domain))
        tids = self._tids(domain)
        for tid in known.threads.keys() - tids:
            self.files.forget((known.threads.pop(tid),))
        known.listed = len(tids)
        newly = []
        for tid in sorted(tids):
            thread = known.threads.get(tid)
            role = roles.get(tid)
            if role is None and (thread is None or thread.role is Role.OTHER):
                role = self._role(domain.pid, tid)
            if thread is not None:
                thread.role = role or thread.role
                continue
            thread = self.files.add(domain.pid, tid, role or Role.OTHER)
            if thread is not None:
                known.threads[tid] = thread
                newly.append(thread)
            if thread is None or thread.role is Role.OTHER:
                # Another may have replaced it, or its name is not set yet.
                known.listed = _AGAIN
        if first or before.interfaces != domain.interfaces:
            known.search.vhost = not any(
                one.role is Role.VHOST for one in known.threads.values()
            ) and vhost.opened(domain.pid, self._proc)
            if first or known.search.vhost:
                newly += self._find_workers(known, True)
        return newly

    def _find_workers(
        self, known: _Process, changed: bool
    ) -> list[counters.Thread]:
        newly = []
        found = known.search.found(known.threads.keys(), changed)
        for tid, role in found.items():
            if tid not in known.workers:
                thread = self.files.add(tid, tid, role)
                if thread is not None:
                    known.workers[tid] = thread
                    newly.append(thread)
        return newly

    def _roles(self, domain: base.Domain) -> Iterator[tuple[int, Role]]:
        """Yield the threads whose role the driver has."""
        for tid in domain.iothread_tids:
            yield tid, Role.IOTHREAD
        for vcpu in domain.vcpus:
            yield vcpu.tid, Role.VCPU

    def _role(self, pid: int, tid: int) -> Role:
        """Return a thread's role by its name."""
        comm = qemu_process.comm(tid, '%s/%d/task' % (self._proc, pid)) or ''
        if vhost.is_worker(comm):
            return Role.VHOST
        if comm == qemu_process.POOL_COMM:
            return Role.WORKER
        if comm == cgroup.KVM_RECOVERY_COMM:
            return Role.KVM
        if qemu_process.vcpus_by_comm({tid: comm}):
            return Role.VCPU
        if qemu_process.iothreads_by_comm({tid: comm}):
            return Role.IOTHREAD
        return Role.EMULATOR if tid == pid else Role.OTHER

    def _process(self, domain: base.Domain) -> _Process:
        return _Process(domain, kernel_threads.Search(self._kernel_threads))

    def _close(self, known: _Process) -> None:
        self.files.forget(known.threads.values())
        self.files.forget(known.workers.values())

    def _now_ticks(self) -> int:
        # Start times count from boot, suspended time included.
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * self._ticks_per_s)
