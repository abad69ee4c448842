# SPDX-License-Identifier: Apache-2.0

"""Rebuild root domains in the unified hierarchy: CAP_DAC_OVERRIDE.

Part of the helper of :mod:`vsched_agent.privileged.cgroup`.
"""

import os
import typing as ty

from vsched_agent.privileged import cgroup
from vsched_agent.privileged import cgroup_tree

_CPUS, _PARTITION = 'cpuset.cpus', 'cpuset.cpus.partition'
_ROOT, _MEMBER = 'root', 'member'


@cgroup.cgroup_pctxt.entrypoint
def rebuild_root_domains(path: str, cpu: int) -> dict[str, ty.Any]:
    """Make the kernel rebuild its root domains, by a partition for a moment.

    :param path: of the group that is made and removed, at the hierarchy's
        top, named like a group of a probe.
    :param cpu: that becomes the partition.
    :returns: empty on success, else ``path`` and ``errno``, or ``state`` of a
        partition that is not valid.
    :raises PermissionError: for another path.
    """
    cgroup.check_own_name(path)
    with cgroup.open_top(path) as top:
        try:
            os.mkdir(os.path.basename(path), dir_fd=top.folder)
            try:
                with cgroup_tree.open_group(path) as group:
                    return _split(group, cpu)
            finally:
                os.rmdir(os.path.basename(path), dir_fd=top.folder)
        except OSError as failure:
            if failure.errno is None:
                raise
            return {'path': path, 'errno': failure.errno}


def _split(group: cgroup_tree.Group, cpu: int) -> dict[str, ty.Any]:
    group.write(_CPUS, str(int(cpu)))
    group.write(_PARTITION, _ROOT)
    state = group.read(_PARTITION)
    group.write(_PARTITION, _MEMBER)
    return {} if state == _ROOT else {'path': group.path, 'state': state}
