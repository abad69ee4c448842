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

"""The process and the threads of one domain, as the kernel shows them.

Needs no daemon: it works while libvirt or a monitor does not answer.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import pathlib
import re

from vsched_agent.hypervisor import definition

PROC = pathlib.Path('/proc')
CGROUP = pathlib.Path('/sys/fs/cgroup')

# QEMU names its threads since libvirt asks it to (-name debug-threads=on).
_VCPU = re.compile(r'CPU (\d{1,5})/[A-Za-z]+\Z')
_IOTHREAD = re.compile(r'IO iothread\d+\Z')


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A process that can not be confused with a later one of its pid.

    :param pid: its number.
    :param start_ticks: when it started, in clock ticks since boot.
    """

    pid: int
    start_ticks: int


def start_ticks(pid: int, tid: int | None = None,
                proc: str | pathlib.Path = PROC) -> int | None:
    """When a process, or one thread of it, started.

    :returns: clock ticks since boot; None when it is gone.
    """
    path = '%s/%d/stat' % (proc, pid) if tid is None else (
        '%s/%d/task/%d/stat' % (proc, pid, tid))
    fields = _stat(path)
    return None if fields is None else int(fields[22 - 3])


def _stat(path: str) -> list[bytes] | None:
    """The fields from the third on; their numbers are those of proc(5)."""
    try:
        with open(path, 'rb') as file:
            stat = file.read()
    except OSError:
        return None
    # The name, in brackets, may hold anything; count from its end.
    return stat[stat.rfind(b')') + 2:].split()


def find(uuid: str, name: str, run_dir: pathlib.Path,
         proc: pathlib.Path = PROC) -> Process | None:
    """The process that runs a domain.

    Asks the pid file, then libvirt's state file, then every process. What
    they say counts only when that process's command line names the domain:
    a pid file may be older than the last start of the host's processes.

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


def _candidates(name: str, run_dir: pathlib.Path,
                proc: pathlib.Path) -> Iterator[int]:
    if pathlib.PurePath(name).name == name:
        with contextlib.suppress(OSError, ValueError):
            yield int((run_dir / (name + '.pid')).read_text())
        # ValueError: an unreadable definition is one too.
        with contextlib.suppress(OSError, ValueError):
            status = definition.parse_xml(
                (run_dir / (name + '.xml')).read_text())
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
    return any(word == b'-uuid' and value.lower() == wanted
               for word, value in zip(words, words[1:], strict=False))


def tids(pid: int, proc: pathlib.Path = PROC) -> frozenset[int]:
    """Every thread of a process; empty when it is gone."""
    try:
        return frozenset(
            int(entry.name)
            for entry in (proc / str(pid) / 'task').iterdir())
    except OSError:
        return frozenset()


def comms(pid: int, proc: pathlib.Path = PROC) -> dict[int, str]:
    """The name of every thread of a process, by thread."""
    found = {}
    for tid in tids(pid, proc):
        # Threads of QEMU's pool come and go.
        with contextlib.suppress(OSError):
            found[tid] = (proc / str(pid) / 'task' / str(tid) / 'comm'
                          ).read_text().rstrip('\n')
    return found


def comm(pid: int, proc: str | pathlib.Path = PROC) -> str | None:
    """The name of a process; of a thread when ``proc`` is a folder of them.

    :returns: None when it is gone.
    """
    try:
        with open('%s/%d/comm' % (proc, pid), encoding='utf-8',
                  errors='replace') as file:
            return file.read().rstrip('\n')
    except OSError:
        return None


def parent(pid: int, proc: str | pathlib.Path = PROC) -> int | None:
    """The process that a process was started by; None when it is gone."""
    fields = _stat('%s/%d/stat' % (proc, pid))
    return None if fields is None else int(fields[4 - 3])


def vcpus_by_comm(names: Mapping[int, str]) -> dict[int, int]:
    """The thread of each vCPU by its number, from names of threads."""
    found = {}
    for tid, comm in names.items():
        match = _VCPU.match(comm)
        if match:
            found[int(match[1])] = tid
    return found


def agreed_vcpus(told: Mapping[int, int],
                 threads: Collection[int]) -> dict[int, int]:
    """Vet what somebody told of a process's vCPU threads.

    One thread may run all vCPUs (emulation by a single thread): it is one
    thing to schedule, and belongs to the first.

    :param told: threads by the number of the vCPU.
    :param threads: the threads that the process has.
    :returns: those that exist, each once.
    """
    once: dict[int, int] = {}
    for index, tid in sorted(told.items()):
        if tid in threads and tid not in once.values():
            once[index] = tid
    return once


def iothreads_by_comm(names: Mapping[int, str]) -> tuple[int, ...]:
    """The threads that are dedicated to block I/O, in order.

    QEMU's own monitor thread (``IO mon_iothread``) is none of them.
    """
    return tuple(sorted(tid for tid, comm in names.items()
                        if _IOTHREAD.match(comm)))


def vcpus_by_cgroup(pid: int, proc: pathlib.Path = PROC,
                    cgroup: pathlib.Path = CGROUP) -> dict[int, int]:
    """The thread of each vCPU by its number, from libvirt's cgroups.

    libvirt puts each vCPU thread into a group ``vcpuN`` beside the group
    ``emulator`` where the rest of the process lives; under cgroup v1 in
    the cpu controller's tree, under v2 in the only one.

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
            # cgroup.threads is v2's word, tasks v1's.
            for file in ('cgroup.threads', 'tasks'):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    if number.isdecimal():
                        tid = int((group / file).read_text().split()[0])
                        found.setdefault(int(number), tid)
    return found
