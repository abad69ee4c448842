# SPDX-License-Identifier: Apache-2.0

"""Return leaked deadline bandwidth to the kernel.

The kernel keeps the sum of the admitted bandwidth per root domain. Rebuilding
the domains makes it recount the threads in the class. On cgroup v1 toggling
the root cpuset's ``sched_load_balance`` does that
(Documentation/admin-guide/cgroup-v1/cpusets.rst). For a moment every CPU is a
domain without balancing; nothing stops meanwhile.
"""

from vsched_agent.host import cgroup
from vsched_agent.privileged import cgroup as privileged

_SWITCH = 'cpuset.sched_load_balance'


class NotRepairable(Exception):
    """Only a reboot recovers the bandwidth on this host."""


def switch(cgroups: cgroup.Cgroups) -> str:
    """Return the file that rebuilds the root domains.

    :param cgroups: the host's control groups.
    :raises NotRepairable: when there is none.
    """
    mount = cgroups.mount('cpuset')
    if mount is None or mount.version != 1:
        raise NotRepairable(
            'only cgroup v1 with the cpuset controller can rebuild the root '
            'domains while the host runs; a reboot does it as well'
        )
    return '%s/%s' % (mount.point.rstrip('/'), _SWITCH)


def rebuild_root_domains(cgroups: cgroup.Cgroups | None = None) -> None:
    """Make the kernel recount the admitted bandwidth.

    :raises NotRepairable: when the host cannot do that, or refuses it.
    """
    path = switch(cgroups or cgroup.Cgroups())
    try:
        if cgroup.read_text(path) != '1':
            raise NotRepairable(
                '%s is not 1: the host uses root domains of its own, '
                'which vsched does not change' % path
            )
    except FileNotFoundError:
        raise NotRepairable('there is no %s' % path) from None
    failed = privileged.write([(path, '0'), (path, '1')])
    if failed:
        raise NotRepairable(
            '%s refuses: errno %d' % (failed['path'], failed['errno'])
        )
