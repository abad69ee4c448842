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

"""Counters of disks, of many domains in one call to libvirt.

The figures are QEMU's, so each domain's monitor is asked. One that does not
answer keeps the whole call waiting. It also keeps its domain busy, and a
later call passes over busy domains (NOWAIT): so there may be a second call
when the first one hangs, and it tells of all other domains.
"""

from collections.abc import Collection
import typing as ty

import libvirt

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import libvirt_calls

_FLAGS = (libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE |
          libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT)
# Calls at most of which none returns.
_SLOTS = tuple(('disks', slot) for slot in range(3))


def ask(calls: libvirt_calls.LibvirtCalls, connection: libvirt.virConnect,
        uuids: Collection[str]) -> dict[str, dict[str, base.DiskCounters]]:
    """Counters by domain and disk.

    :param uuids: the domains; those that can not be asked just now are
        left out of the answer.
    :raises base.HypervisorUnavailable: when the daemon can not be asked.
    """
    def look() -> list[tuple[ty.Any, dict[str, ty.Any]]]:
        wanted = [one for one in connection.listAllDomains(
            libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)
            if one.UUIDString() in uuids]
        if not wanted:
            return []
        return ty.cast(
            list[tuple[ty.Any, dict[str, ty.Any]]],
            connection.domainListGetStats(
                wanted, libvirt.VIR_DOMAIN_STATS_BLOCK, _FLAGS))

    overdue = calls.bounded.overdue
    slot = next((one for one in _SLOTS if one not in overdue), _SLOTS[0])
    found = {}
    for domain, stats in calls.run(slot, connection, look):
        counters = read(stats)
        if counters:
            found[domain.UUIDString()] = counters
    return found


def read(stats: dict[str, ty.Any]) -> dict[str, base.DiskCounters]:
    """One domain's disks by name.

    :param stats: as libvirt tells them: ``block.N.rd.reqs`` and so on.
        Disks without figures, such as an empty drive, are left out.
    """
    found = {}
    for number in range(stats.get('block.count', 0)):
        prefix = 'block.%d.' % number
        name, reads, writes = (stats.get(prefix + key) for key in (
            'name', 'rd.reqs', 'wr.reqs'))
        if name is not None and reads is not None and writes is not None:
            found[name] = base.DiskCounters(reads, writes)
    return found
