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

"""What the agent may write below the cgroup mounts: CAP_DAC_OVERRIDE."""

import atexit
from collections.abc import Iterable
import os
import re
import time
import typing as ty

from oslo_privsep import capabilities

from vsched_agent.privileged import context

cgroup_pctxt = context.Context(
    'cgroup_pctxt', __name__, 'vsched_cgroup_privileged',
    [capabilities.CAP_DAC_OVERRIDE])

#: Where control groups are mounted, and the only files ever written there.
ROOT = '/sys/fs/cgroup'
WRITABLE = frozenset((
    'cpu.cfs_quota_us', 'cpu.cfs_period_us', 'cpu.max', 'cpuset.cpus',
    'cpuset.sched_load_balance'))


@cgroup_pctxt.entrypoint
def write(values: Iterable[tuple[str, str]]) -> dict[str, ty.Any]:
    """Write control files in this order, all or none.

    :param values: (path, text) pairs.
    :returns: empty when it is done; else ``path`` and ``errno`` of the
        failure, after the files written before it were given back what
        they had; ``unrestored`` names those that could not.
    :raises PermissionError: for a path that is not one of ours.
    """
    values = tuple(values)
    for path, _ in values:
        _check(path)
    done: list[tuple[str, str]] = []
    for path, text in values:
        try:
            before = _read(path)
            _write(path, text)
        except OSError as failure:
            unrestored = []
            for other, earlier in reversed(done):
                try:
                    _write(other, earlier)
                except FileNotFoundError:
                    continue
                except OSError:
                    unrestored.append(other)
            return {'path': path, 'errno': failure.errno or 0,
                    'unrestored': unrestored}
        done.append((path, before))
    return {}


#: What the groups of probes are named: their owner's process, and a number.
PROBE_GROUP = re.compile(r'vsched-probe-([0-9]{1,10})-[0-9]{1,10}\Z', re.ASCII)
#: How long a group may take to be empty after its last thread was killed.
_EMPTY_S = 2.0
_LOOK_S = 0.01

_groups: set[str] = set()


@cgroup_pctxt.entrypoint
def make_probe_group(path: str, pid: int) -> dict[str, ty.Any]:
    """Make a group for one process and put it there.

    The group ends with this helper at the latest, which ends with whoever
    it helps, however that dies.

    :param path: named like :data:`PROBE_GROUP`, at a hierarchy's top.
    :param pid: the process.
    :returns: empty when it is done, else ``path`` and ``errno``.
    :raises PermissionError: for a path that is not one of ours.
    """
    _check_group(path)
    if not _groups:
        atexit.register(_remove_all)
    try:
        os.mkdir(path)
        _groups.add(path)
        with open(os.path.join(path, 'cgroup.procs'), 'w') as procs:
            procs.write(str(pid))
    except OSError as failure:
        _remove(path)
        return {'path': path, 'errno': failure.errno or 0}
    return {}


@cgroup_pctxt.entrypoint
def remove_probe_group(path: str) -> bool:
    """Remove a group whose process was ended.

    :returns: whether it is gone.
    :raises PermissionError: for a path that is not one of ours.
    """
    _check_group(path)
    return _remove(path)


@cgroup_pctxt.entrypoint
def remove_stale_probe_groups(top: str) -> int:
    """Remove groups whose owner is gone: it and its helper were killed.

    :param top: of a hierarchy.
    :returns: how many.
    """
    removed = 0
    for name in os.listdir(top):
        match = PROBE_GROUP.match(name)
        if match and not os.path.exists('/proc/' + match[1]):
            path = os.path.join(top, name)
            _check_group(path)
            removed += _remove(path)
    return removed


def _remove_all() -> None:
    for path in list(_groups):
        _remove(path)


def _remove(path: str) -> bool:
    give_up = time.monotonic() + _EMPTY_S
    while True:
        try:
            os.rmdir(path)
        except FileNotFoundError:
            break
        except OSError:
            if time.monotonic() >= give_up:
                return False
            time.sleep(_LOOK_S)
        else:
            break
    _groups.discard(path)
    return True


def _check_group(path: str) -> None:
    real = os.path.realpath(path)
    root = os.path.realpath(ROOT)
    if (not PROBE_GROUP.match(os.path.basename(real)) or
            os.path.commonpath((root, real)) != root):
        raise PermissionError('%s is not for vsched to make' % path)


def _check(path: str) -> None:
    real = os.path.realpath(path)
    root = os.path.realpath(ROOT)
    if (os.path.basename(real) not in WRITABLE or
            os.path.commonpath((root, real)) != root):
        raise PermissionError('%s is not for vsched to write' % path)


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def _write(path: str, text: str) -> None:
    # One write(2): the kernel takes a value whole or not at all.
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(descriptor, text.encode() or b'\n')
    finally:
        os.close(descriptor)
