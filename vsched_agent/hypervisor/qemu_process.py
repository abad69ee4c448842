# SPDX-License-Identifier: Apache-2.0

"""The process and the threads of one domain, read from procfs.

It works without libvirt's daemon and QEMU's monitor.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import pathlib
import re

from vsched_agent.host import cgroup as cgroups
from vsched_agent.hypervisor.libvirt import domain

PROC = pathlib.Path('/proc')
CGROUP = pathlib.Path('/sys/fs/cgroup')

#: Threads of QEMU's pool, which come and go.
POOL_COMM = 'worker'
# QEMU names its threads because libvirt sets -name debug-threads=on.
_VCPU = re.compile(r'CPU (\d{1,5})/[A-Za-z]+\Z')
_IOTHREAD = re.compile(r'IO iothread\d+\Z')


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A process, distinguished from a later one with the same pid.

    :param pid: its number.
    :param start_ticks: when it started, in clock ticks since boot.
    """

    pid: int
    start_ticks: int


def start_ticks(
    pid: int, tid: int | None = None, proc: str | pathlib.Path = PROC
) -> int | None:
    """Return when a process, or one of its threads, started.

    :returns: clock ticks since boot; None when it has ended.
    """
    path = (
        '%s/%d/stat' % (proc, pid)
        if tid is None
        else ('%s/%d/task/%d/stat' % (proc, pid, tid))
    )
    fields = _stat(path)
    return None if fields is None else int(fields[22 - 3])


def _stat(path: str) -> list[bytes] | None:
    """Return the fields from the third on, as numbered in proc(5)."""
    try:
        with open(path, 'rb') as file:
            stat = file.read()
    except OSError:
        return None
    # The name, in parentheses, may contain anything; count from its end.
    return stat[stat.rfind(b')') + 2 :].split()


def find(
    uuid: str, name: str, run_dir: pathlib.Path, proc: pathlib.Path = PROC
) -> Process | None:
    """Return the process that runs a domain.

    Reads the pid file, then libvirt's state file, then every process. A result
    counts only when that process's command line names the domain: a pid file
    may be stale.

    :param uuid: the domain's UUID.
    :param name: the domain's name.
    :param run_dir: where libvirt's QEMU driver keeps its state.
    :returns: None when there is none.
    """
    for pid in _candidates(name, run_dir, proc):
        if _runs(pid, uuid, proc):
            ticks = start_ticks(pid, proc=proc)
            if ticks is not None:
                return Process(pid, ticks)
    return None


def alive(process: Process, proc: pathlib.Path = PROC) -> bool:
    """Whether this very process still runs."""
    return start_ticks(process.pid, proc=proc) == process.start_ticks


def _candidates(
    name: str, run_dir: pathlib.Path, proc: pathlib.Path
) -> Iterator[int]:
    if pathlib.PurePath(name).name == name:
        with contextlib.suppress(OSError, ValueError):
            yield int((run_dir / (name + '.pid')).read_text())
        # ValueError: an unreadable definition is one too.
        with contextlib.suppress(OSError, ValueError):
            status = domain.parse_xml((run_dir / (name + '.xml')).read_text())
            yield int(status.get('pid', ''))
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            yield int(entry.name)


def _runs(pid: int, uuid: str, proc: pathlib.Path) -> bool:
    try:
        words = (proc / str(pid) / 'cmdline').read_bytes().split(b'\0')
    except OSError:
        return False
    wanted = uuid.lower().encode()
    return any(
        word == b'-uuid' and value.lower() == wanted
        for word, value in zip(words, words[1:], strict=False)
    )


def tids(pid: int, proc: pathlib.Path = PROC) -> frozenset[int]:
    """Return every thread of a process; empty when it has ended."""
    try:
        return frozenset(
            int(entry.name) for entry in (proc / str(pid) / 'task').iterdir()
        )
    except OSError:
        return frozenset()


def comms(pid: int, proc: pathlib.Path = PROC) -> dict[int, str]:
    """Return the names of a process's threads, by thread."""
    found = {}
    for tid in tids(pid, proc):
        # Threads of QEMU's pool may end meanwhile.
        with contextlib.suppress(OSError):
            found[tid] = (
                (proc / str(pid) / 'task' / str(tid) / 'comm')
                .read_text()
                .rstrip('\n')
            )
    return found


def comm(pid: int, proc: str | pathlib.Path = PROC) -> str | None:
    """Return a process's name; a thread's when ``proc`` is a task folder.

    :returns: None when it has ended.
    """
    try:
        with open(
            '%s/%d/comm' % (proc, pid), encoding='utf-8', errors='replace'
        ) as file:
            return file.read().rstrip('\n')
    except OSError:
        return None


def parent(pid: int, proc: str | pathlib.Path = PROC) -> int | None:
    """Return a process's parent; None when the process has ended."""
    fields = _stat('%s/%d/stat' % (proc, pid))
    return None if fields is None else int(fields[4 - 3])


def vcpus_by_comm(names: Mapping[int, str]) -> dict[int, int]:
    """Return the thread of each vCPU by its number, from thread names."""
    found = {}
    for tid, comm in names.items():
        match = _VCPU.match(comm)
        if match:
            found[int(match[1])] = tid
    return found


def existing_vcpus(
    reported: Mapping[int, int], threads: Collection[int]
) -> dict[int, int]:
    """Validate reported vCPU threads of a process.

    One thread may run all vCPUs (single-threaded emulation): it is scheduled
    once, as the first vCPU.

    :param reported: threads by the number of the vCPU.
    :param threads: the process's threads.
    :returns: those that exist, each once.
    """
    once: dict[int, int] = {}
    for index, tid in sorted(reported.items()):
        if tid in threads and tid not in once.values():
            once[index] = tid
    return once


def iothreads_by_comm(names: Mapping[int, str]) -> tuple[int, ...]:
    """Return the threads dedicated to block I/O, in order.

    QEMU's own monitor thread (``IO mon_iothread``) is not included.
    """
    return tuple(
        sorted(tid for tid, comm in names.items() if _IOTHREAD.match(comm))
    )


def vcpus_by_cgroup(
    pid: int, proc: pathlib.Path = PROC, cgroup: pathlib.Path = CGROUP
) -> dict[int, int]:
    """Return the thread of each vCPU by its number, from libvirt's cgroups.

    libvirt puts each vCPU thread into a group ``vcpuN`` next to the group
    ``emulator`` of the other threads; under cgroup v1 in the cpu controller's
    tree, under v2 in the only one. A thread of KVM's own may be in the group.

    :returns: empty where libvirt made no such groups.
    """
    try:
        lines = (proc / str(pid) / 'cgroup').read_text().splitlines()
    except OSError:
        return {}
    found: dict[int, int] = {}
    for line in lines:
        _, controllers, path = line.split(':', 2)
        tree = cgroup / controllers
        if controllers and 'cpu' not in controllers.split(','):
            continue
        for group in (tree / path.lstrip('/')).parent.glob('vcpu*'):
            number = group.name.removeprefix('vcpu')
            # cgroup.threads under v2, tasks under v1.
            for file in ('cgroup.threads', 'tasks'):
                with contextlib.suppress(OSError, ValueError, StopIteration):
                    if number.isdecimal():
                        tid = next(
                            int(text)
                            for text in (group / file).read_text().split()
                            if comm(int(text), proc / str(pid) / 'task')
                            != cgroups.KVM_RECOVERY_COMM
                        )
                        found.setdefault(int(number), tid)
    return found
