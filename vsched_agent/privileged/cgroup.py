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

from collections.abc import Iterable
import os
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
