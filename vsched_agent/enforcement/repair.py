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

"""Gives leaked deadline bandwidth back to the kernel.

The kernel adds up what it has admitted in each root domain. Making the
domains anew makes it count the threads that really are in the class. On
cgroup v1 the root cpuset's ``sched_load_balance`` does that: off, and on
again (Documentation/admin-guide/cgroup-v1/cpusets.rst). For a moment every
CPU is a domain without balancing; nothing stops meanwhile.
"""

from vsched_agent.enforcement import cgroup
from vsched_agent.privileged import cgroup as privileged

_SWITCH = 'cpuset.sched_load_balance'


class NotRepairable(Exception):
    """This host offers no way but a reboot."""


def switch(cgroups: cgroup.Cgroups) -> str:
    """The file that makes the root domains anew.

    :param cgroups: the host's control groups.
    :raises NotRepairable: where there is none.
    """
    mount = cgroups.mount('cpuset')
    if mount is None or mount.version != 1:
        raise NotRepairable(
            'only cgroup v1 with the cpuset controller can make the root '
            'domains anew while the host runs; a reboot does it as well')
    return '%s/%s' % (mount.point.rstrip('/'), _SWITCH)


def rebuild_root_domains(cgroups: cgroup.Cgroups | None = None) -> None:
    """Make the kernel count anew.

    :raises NotRepairable: when the host has no way, or refuses it.
    """
    path = switch(cgroups or cgroup.Cgroups())
    try:
        if cgroup.read_text(path) != '1':
            raise NotRepairable(
                '%s is not 1: somebody keeps root domains of their own, '
                'which vsched leaves alone' % path)
    except FileNotFoundError:
        raise NotRepairable('there is no %s' % path) from None
    failed = privileged.write([(path, '0'), (path, '1')])
    if failed:
        raise NotRepairable('%s refuses: errno %d' % (
            failed['path'], failed['errno']))
