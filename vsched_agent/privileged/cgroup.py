# SPDX-License-Identifier: Apache-2.0

"""Write control files below the cgroup mounts: CAP_DAC_OVERRIDE.

Only the control files and values below, only in groups whose threads vsched
owns (:mod:`vsched_agent.privileged.ownership`), and only by paths that
:mod:`vsched_agent.privileged.cgroup_tree` opens.
"""

import atexit
from collections.abc import Iterable
import errno
import os
import re
import time
import types
import typing as ty

from oslo_privsep import capabilities

from vsched_agent.privileged import cgroup_tree
from vsched_agent.privileged import context
from vsched_agent.privileged import ownership

cgroup_pctxt = context.Context(
    'cgroup_pctxt',
    __name__,
    'vsched_cgroup_privileged',
    [capabilities.CAP_DAC_OVERRIDE],
)

_CPUS = re.compile(r'([0-9]{1,5}(-[0-9]{1,5})?,?)*\Z', re.ASCII)
#: The only files written in a group, with patterns of their values.
WRITABLE: ty.Mapping[str, re.Pattern[str]] = types.MappingProxyType(
    {
        'cpu.cfs_quota_us': re.compile(r'(-1|[0-9]{1,13})\Z', re.ASCII),
        'cpu.cfs_period_us': re.compile(r'[0-9]{1,7}\Z', re.ASCII),
        'cpu.max': re.compile(r'(max|[0-9]{1,13}) [0-9]{1,7}\Z', re.ASCII),
        'cpuset.cpus': _CPUS,
    }
)
#: The same at the top of a hierarchy: see enforcement.leak_repair.
WRITABLE_AT_TOP: ty.Mapping[str, re.Pattern[str]] = types.MappingProxyType(
    {'cpuset.sched_load_balance': re.compile(r'[01]\Z', re.ASCII)}
)
#: Longest CPU list that may be written.
_LONGEST = 4096


@cgroup_pctxt.entrypoint
def write(values: Iterable[tuple[str, str]]) -> dict[str, ty.Any]:
    """Write control files in this order, all or none.

    :param values: (path, text) pairs.
    :returns: empty on success; else ``path`` and ``errno`` of the failure,
        after the files written before it were restored; ``unrestored`` names
        those that could not be.
    :raises PermissionError: for a path or a text that is not permitted, or a
        group with threads of others; nothing is written then.
    """
    values = tuple(values)
    for path, text in values:
        _check(path, text)
    done: list[tuple[str, str]] = []
    for path, text in values:
        try:
            before = _write(path, text)
        except PermissionError as refusal:
            if refusal.errno is None:
                _undo(done)
                raise
            failure: OSError = refusal
        except OSError as problem:
            failure = problem
        else:
            done.append((path, before))
            continue
        return {
            'path': path,
            'errno': failure.errno or 0,
            'unrestored': _undo(done),
        }
    return {}


def _undo(done: list[tuple[str, str]]) -> list[str]:
    unrestored = []
    for path, earlier in reversed(done):
        try:
            _write(path, earlier)
        except FileNotFoundError:
            continue
        except OSError:
            unrestored.append(path)
    return unrestored


#: Names of probe groups: their owner's process, and a number.
PROBE_GROUP = re.compile(r'vsched-probe-([0-9]{1,10})-[0-9]{1,10}\Z', re.ASCII)
#: Longest time until a group is empty after its last thread was killed, in
#: seconds.
_EMPTY_S = 2.0
_POLL_S = 0.01

_groups: set[str] = set()


@cgroup_pctxt.entrypoint
def make_probe_group(path: str, pid: int) -> dict[str, ty.Any]:
    """Make a group for one process and move the process into it.

    The group is removed with this helper at the latest, which ends with its
    client, also when that is killed.

    :param path: named like :data:`PROBE_GROUP`, at a hierarchy's top.
    :param pid: the process.
    :returns: empty on success, else ``path`` and ``errno``.
    :raises PermissionError: for another path, or a process that is not the
        client's child.
    """
    check_own_name(path)
    ownership.check_children([pid])
    if not _groups:
        atexit.register(_remove_all)
    with open_top(path) as top:
        try:
            os.mkdir(os.path.basename(path), dir_fd=top.folder)
        except OSError as failure:
            return {'path': path, 'errno': failure.errno or 0}
    _groups.add(path)
    try:
        with cgroup_tree.open_group(path) as group:
            group.write('cgroup.procs', str(pid))
    except OSError as failure:
        _remove(path)
        return {'path': path, 'errno': failure.errno or 0}
    return {}


@cgroup_pctxt.entrypoint
def remove_probe_group(path: str) -> bool:
    """Remove a group whose process was ended.

    :returns: whether it is removed.
    :raises PermissionError: for a path that is no probe group of the client.
    """
    check_own_name(path)
    return _remove(path)


@cgroup_pctxt.entrypoint
def remove_stale_probe_groups(top: str) -> int:
    """Remove groups whose owner and its helper were killed.

    :param top: of a hierarchy.
    :returns: how many.
    """
    with cgroup_tree.open_group(top) as group:
        _at_top(group)
        folder = os.open(
            '.',
            os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC,
            dir_fd=group.folder,
        )
    try:
        names = os.listdir(folder)
    finally:
        os.close(folder)
    removed = 0
    for name in names:
        match = PROBE_GROUP.match(name)
        if match and not os.path.exists('/proc/' + match[1]):
            removed += _remove(os.path.join(top, name))
    return removed


def _remove_all() -> None:
    for path in list(_groups):
        _remove(path)


def _remove(path: str) -> bool:
    give_up = time.monotonic() + _EMPTY_S
    while True:
        try:
            with open_top(path) as top:
                os.rmdir(os.path.basename(path), dir_fd=top.folder)
        except FileNotFoundError:
            break
        except OSError as failure:
            if failure.errno is None:
                raise
            if time.monotonic() >= give_up:
                return False
            time.sleep(_POLL_S)
        else:
            break
    _groups.discard(path)
    return True


def check_own_name(path: str) -> None:
    """Refuse a path that is no probe group of the client."""
    match = PROBE_GROUP.match(os.path.basename(path))
    if not match or int(match[1]) != ownership.client():
        raise PermissionError(
            '%r is refused: a group of a probe is named '
            'vsched-probe-%d-NUMBER' % (path, ownership.client())
        )


def open_top(path: str) -> cgroup_tree.Group:
    group = cgroup_tree.open_group(os.path.dirname(path))
    try:
        _at_top(group)
    except BaseException:
        os.close(group.folder)
        raise
    return group


def _at_top(group: cgroup_tree.Group) -> None:
    if group.depth:
        raise PermissionError(
            '%r is refused: groups of probes are at the top of a hierarchy'
            % group.path
        )


def _check(path: str, text: str) -> None:
    """Refuse a file or a text that is not permitted."""
    name = os.path.basename(path)
    pattern = WRITABLE.get(name) or WRITABLE_AT_TOP.get(name)
    if pattern is None:
        raise PermissionError(
            '%r is refused: of control files only %s are written'
            % (path, ', '.join(sorted((*WRITABLE, *WRITABLE_AT_TOP))))
        )
    if len(text) > _LONGEST or not pattern.match(text):
        raise PermissionError(
            '%r is refused: %s may not be set to %.80r' % (path, name, text)
        )
    try:
        with cgroup_tree.open_group(os.path.dirname(path)) as group:
            _check_group(group, name)
    except FileNotFoundError:
        # Writing fails with the same error.
        return


def _check_group(group: cgroup_tree.Group, name: str) -> None:
    """Refuse a group that holds threads of others, or none."""
    if name in WRITABLE_AT_TOP:
        if group.depth:
            raise PermissionError(
                '%r is refused: %s is written at the top of a hierarchy '
                'only' % (group.path, name)
            )
        return
    if not group.depth:
        raise PermissionError(
            '%r is refused: %s is not written at the top of a hierarchy'
            % (group.path, name)
        )
    tids = group.threads()
    if not tids:
        # Treated like a removed group: its thread has ended.
        raise FileNotFoundError(
            errno.ENOENT, 'the group has no thread any more', group.path
        )
    ownership.check(tids)


def _write(path: str, text: str) -> str:
    """Write a control file.

    :returns: its former text.
    """
    name = os.path.basename(path)
    with cgroup_tree.open_group(os.path.dirname(path)) as group:
        # Check the same open folder that is written to.
        _check_group(group, name)
        before = group.read(name)
        group.write(name, text)
        return before
