# SPDX-License-Identifier: Apache-2.0

"""Check which threads a helper may change.

A helper that acts on any thread would give an attacker who controls the agent
all processes of the host. It acts only on threads of

* QEMU processes that libvirt started: named like an emulator (the program's
path as well, where the kernel shows it), and identified by what only root can
make, a control group below ``/machine`` or a pid file of libvirt's driver;
* the kernel's vhost workers of such a process;
* children of the helper's client with that process's own user: its probes, the
peer of a calibration VM, simulated instances.

QEMU processes and vhost workers are cached by thread id and start time, so a
reused id is checked again. Children are checked each time: one that executes a
set-user-id program keeps both. Microseconds remain between the check and the
action; the kernel reuses an id only after all others.
"""

from collections.abc import Iterable
import contextlib
import functools
import os
import pathlib
import re
import typing as ty

#: Where libvirt's QEMU driver keeps pid files.
PID_FILES = pathlib.Path('/run/libvirt/qemu')

_EMULATOR = re.compile(r'(qemu-system-[a-z0-9_]+|qemu-kvm|kvm)\Z', re.ASCII)
#: The same as the kernel shortens it, in the name of the first thread.
_EMULATOR_COMM = re.compile(
    r'(qemu-system-[a-z0-9_]{0,3}|qemu-kvm|kvm)\Z', re.ASCII
)
# From a container's cgroup namespace the path goes up first.
_MACHINE = re.compile(
    r'(/\.\.)*/machine(\.slice)?/(.*/)?('
    r'qemu-[^/]+\.libvirt-qemu|machine-qemu[^/]+\.scope)(/|\Z)'
)
_VHOST = re.compile(r'vhost-([0-9]{1,10})\Z', re.ASCII)
_DELETED = ' (deleted)'

_PF_KTHREAD = 0x0020_0000
#: Places in /proc/TID/stat behind the name, see proc(5).
_PARENT, _FLAGS, _STARTED = 1, 6, 19
_ROOM = 4096
#: Ended threads are removed from the cache above this number.
_REMEMBERED = 16_384


class _Stat(ty.NamedTuple):
    comm: str
    parent: int
    flags: int
    started: int


class _Client(ty.NamedTuple):
    """The client process, as first seen."""

    pid: int
    started: int
    uid: int


_client: _Client | None = None
#: Threads of emulators and their vhost workers, with their start times.
_known: dict[int, int] = {}


def serve(pid: int) -> None:
    """Set the client of this helper.

    :param pid: the process at the other end of the socket.
    :raises ProcessLookupError: when it has ended.
    """
    global _client
    _client = _Client(pid, _stat(pid).started, _status(pid).uids[0])
    _known.clear()


def client() -> int:
    """Return the client process; without a helper, the caller itself."""
    return os.getpid() if _client is None else _client.pid


def refusals(tids: Iterable[int]) -> dict[int, str]:
    """Return the threads that must not be changed, with reasons.

    :param tids: threads; ended ones are not refused, the kernel reports
        those itself.
    :returns: reasons by thread.
    """
    found = {}
    for tid in tids:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            why = _refusal(tid)
            if why is not None:
                found[tid] = why
    return found


def check(tids: Iterable[int]) -> None:
    """Refuse threads that must not be changed.

    :param tids: threads; ended ones are ignored.
    :raises PermissionError: for the first one that is refused, with a reason.
    """
    for why in refusals(tids).values():
        raise PermissionError(why)


def child_refusals(pids: Iterable[int]) -> dict[int, str]:
    """Return the processes that are not the client's children, with reasons.

    For what must not happen to QEMU's processes, such as leaving their
    control groups.

    :param pids: processes; ended ones are not refused.
    :returns: reasons by process.
    """
    found = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if not _is_number(pid):
                found[pid] = '%r is no process' % (pid,)
            elif not _is_ours(pid):
                found[pid] = 'process %d (%s) is refused: %s' % (
                    pid,
                    _stat(pid).comm,
                    'it is no child of process %d' % client(),
                )
    return found


def check_children(pids: Iterable[int]) -> None:
    """Refuse processes that are not the client's children.

    :param pids: processes; ended ones are ignored.
    :raises PermissionError: for the first one that is refused, with a reason.
    """
    for why in child_refusals(pids).values():
        raise PermissionError(why)


def _is_number(tid: object) -> bool:
    return isinstance(tid, int) and not isinstance(tid, bool) and tid >= 1


def _refusal(tid: int) -> str | None:
    if not _is_number(tid):
        return '%r is no thread' % (tid,)
    stat = _stat(tid)
    if _known.get(tid) == stat.started or _is_ours(tid):
        return None
    if not (_is_vhost_worker(stat) or _is_emulators(tid)):
        return (
            'thread %d (%s) is refused: it is neither of a QEMU process '
            'that libvirt started nor of a child of process %d'
            % (tid, stat.comm, client())
        )
    if len(_known) >= _REMEMBERED:
        for old in list(_known):
            if not os.path.exists('/proc/%d' % old):
                del _known[old]
    _known[tid] = stat.started
    return None


def _is_vhost_worker(stat: _Stat) -> bool:
    match = _VHOST.match(stat.comm)
    # No process can turn itself into a kernel thread.
    return (
        match is not None
        and bool(stat.flags & _PF_KTHREAD)
        and _is_emulators(int(match[1]))
    )


def _is_ours(tid: int) -> bool:
    status = _status(tid)
    if _client is None:
        return os.getpid() in (status.tgid, _stat(status.tgid).parent)
    if _stat(status.tgid).parent != _client.pid or (
        _stat(_client.pid).started != _client.started
    ):
        return False
    return not _client.uid or set(status.uids) == {_client.uid}


def _is_emulators(tid: int) -> bool:
    try:
        pid = _status(tid).tgid
        comm = _stat(pid).comm
    except (ProcessLookupError, FileNotFoundError):
        return False
    if not _EMULATOR_COMM.match(comm):
        return False
    try:
        program = os.readlink('/proc/%d/exe' % pid)
    except PermissionError:
        # Not readable without the capability: rely on the name.
        pass
    else:
        if not _EMULATOR.match(
            os.path.basename(program.removesuffix(_DELETED))
        ):
            return False
    return _in_machine(pid) or _has_pid_file(pid)


def _in_machine(pid: int) -> bool:
    text = _read('/proc/%d/cgroup' % pid)
    return any(
        _MACHINE.match(line.split(':', 2)[-1]) for line in text.splitlines()
    )


def _has_pid_file(pid: int) -> bool:
    """Whether only root can have written the process's pid file."""
    try:
        if _writable_by_others(PID_FILES):
            return False
        for path in PID_FILES.glob('*.pid'):
            if path.name != 'driver.pid' and not _writable_by_others(path):
                with contextlib.suppress(OSError, ValueError):
                    if int(path.read_text()) == pid:
                        return True
    except OSError:
        pass
    return False


def _writable_by_others(path: pathlib.Path) -> bool:
    found = path.lstat()
    return found.st_uid != 0 or bool(found.st_mode & 0o022)


class _Status(ty.NamedTuple):
    tgid: int
    uids: tuple[int, ...]


def _status(tid: int) -> _Status:
    fields = dict(
        line.split(':', 1)
        for line in _read('/proc/%d/status' % tid).splitlines()
        if ':' in line
    )
    return _Status(
        int(fields['Tgid']), tuple(int(uid) for uid in fields['Uid'].split())
    )


def _stat(tid: int) -> _Stat:
    head, _, rest = _read('/proc/%d/stat' % tid).rpartition(')')
    fields = rest.split()
    return _Stat(
        head.partition('(')[2],
        int(fields[_PARENT]),
        int(fields[_FLAGS]),
        int(fields[_STARTED]),
    )


def _read(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = iter(functools.partial(os.read, descriptor, _ROOM), b'')
        return b''.join(parts).decode(errors='replace')
    finally:
        os.close(descriptor)
