# SPDX-License-Identifier: Apache-2.0

"""Make cpuset partitions of vCPUs: CAP_SYS_ADMIN.

A partition is a group whose CPUs are a root domain of their own: the kernel
admits deadline bandwidth there separately, and schedules nothing else on these
CPUs (Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files"). The
kernel accepts a partition below a group that is none ("remote partition") from
a process with CAP_SYS_ADMIN only. This helper is therefore optional, and does
nothing else.
"""

from collections.abc import Sequence
import errno
import os
import re
import typing as ty

from oslo_privsep import capabilities

from vsched_agent.privileged import cgroup_tree
from vsched_agent.privileged import context
from vsched_agent.privileged import ownership

partitions_pctxt = context.Context(
    'partitions_pctxt',
    __name__,
    'vsched_partitions_privileged',
    [capabilities.CAP_SYS_ADMIN],
)

_CPUS, _EXCLUSIVE = 'cpuset.cpus', 'cpuset.cpus.exclusive'
_PARTITION = 'cpuset.cpus.partition'
_ROOT, _MEMBER = 'root', 'member'
#: Groups of vCPUs below the top of the hierarchy, as libvirt names them.
_VCPU = re.compile(r'(/unified)?/machine(\.slice)?/(.+/)?vcpu[0-9]+')
#: A list of CPUs, as the kernel prints it.
_CPU_LIST = re.compile(r'([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?')


@partitions_pctxt.entrypoint
def isolate(path: str, cpu: int) -> dict[str, ty.Any]:
    """Make the group of a vCPU a partition with one CPU, or change nothing.

    :param path: of the group.
    :param cpu: its only CPU, which no other thread may use from then on.
    :returns: empty on success, else ``path`` and ``errno``, or ``state`` of a
        partition that the kernel does not accept.
    :raises PermissionError: for a group with threads of others, or without.
    """
    _check_vcpu(path)
    with cgroup_tree.open_group(path) as group:
        tids = group.threads()
        if not tids:
            raise PermissionError('%r is refused: it has no thread' % path)
        ownership.check(tids)
        former = group.read(_CPUS) or _effective_above(path)
    claimed: list[str] = []
    try:
        for one in _chain(path):
            if _change_exclusive(one, cpu, True):
                claimed.append(one)
        with cgroup_tree.open_group(path) as group:
            group.write(_CPUS, str(int(cpu)))
            group.write(_PARTITION, _ROOT)
            state = group.read(_PARTITION)
    except OSError as failure:
        if failure.errno is None:
            raise
        return {
            'path': path,
            'errno': failure.errno,
            'unrestored': _dissolve(path, cpu, former, claimed),
        }
    if state == _ROOT:
        return {}
    return {
        'path': path,
        'state': state,
        'unrestored': _dissolve(path, cpu, former, claimed),
    }


@partitions_pctxt.entrypoint
def dissolve(
    path: str, cpu: int, cpus: str, claimed: Sequence[str]
) -> list[str]:
    """Undo :func:`isolate`.

    :param path: of the group, which may be gone.
    :param cpu: its CPU.
    :param cpus: what ``cpuset.cpus`` had; as wide as the parent when empty.
    :param claimed: the groups down to this one that did not have the CPU in
        ``cpuset.cpus.exclusive``.
    :returns: the groups that could not be restored.
    :raises PermissionError: for other groups.
    :raises ValueError: when ``cpus`` is no list of CPUs.
    """
    _check_vcpu(path)
    if not _CPU_LIST.fullmatch(cpus):
        raise ValueError('%r is no list of CPUs' % cpus)
    for one in claimed:
        if not (path + '/').startswith(one + '/'):
            raise PermissionError('%r is refused: not above %r' % (one, path))
    try:
        with cgroup_tree.open_group(path) as group:
            ownership.check(group.threads())
    except FileNotFoundError:
        pass
    return _dissolve(path, cpu, cpus, claimed)


def _dissolve(
    path: str, cpu: int, cpus: str, claimed: Sequence[str]
) -> list[str]:
    unrestored = []
    try:
        with cgroup_tree.open_group(path) as group:
            if group.read(_PARTITION) != _MEMBER:
                group.write(_PARTITION, _MEMBER)
            group.write(_CPUS, cpus or _effective_above(path))
    except OSError as failure:
        if not _is_gone(failure):
            unrestored.append(path)
    for one in sorted(claimed, key=len, reverse=True):
        try:
            _change_exclusive(one, cpu, False)
        except OSError as failure:
            if not _is_gone(failure):
                unrestored.append(one)
    return unrestored


def _change_exclusive(path: str, cpu: int, member: bool) -> bool:
    """Add a CPU to a group's exclusive ones, or remove it.

    :returns: whether it was changed.
    """
    with cgroup_tree.open_group(path) as group:
        if not group.depth:
            raise PermissionError('%r is the top of a hierarchy' % path)
        cpus = set(_parse(group.read(_EXCLUSIVE)))
        if (cpu in cpus) is member:
            return False
        if not member and group.read(_PARTITION) != _MEMBER:
            raise OSError(errno.EBUSY, 'it is a partition', path)
        cpus ^= {cpu}
        group.write(_EXCLUSIVE, ','.join(map(str, sorted(cpus))))
        return True


def _chain(path: str) -> list[str]:
    """Return the groups from the top, without it, down to this one."""
    with cgroup_tree.open_group(path) as group:
        depth = group.depth
    parts = path.split('/')
    return ['/'.join(parts[: len(parts) - up]) for up in range(depth)][::-1]


def _effective_above(path: str) -> str:
    with cgroup_tree.open_group(os.path.dirname(path)) as above:
        return above.read('cpuset.cpus.effective')


def _check_vcpu(path: str) -> None:
    top = cgroup_tree.ROOT.rstrip('/')
    if not path.startswith(top + '/') or not _VCPU.fullmatch(path[len(top) :]):
        raise PermissionError('%r is refused: it is no group of a vCPU' % path)


def _is_gone(failure: OSError) -> bool:
    return failure.errno in (errno.ENOENT, errno.ENODEV)


def _parse(text: str) -> list[int]:
    cpus: list[int] = []
    for part in filter(None, text.split(',')):
        first, _, last = part.partition('-')
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus
