# SPDX-License-Identifier: Apache-2.0

"""Read disk counters of many domains in one call to libvirt.

The counters are QEMU's, so libvirt queries each domain's monitor. One that
does not answer blocks the whole call. It also keeps its domain busy, and a
later call skips busy domains (NOWAIT): so a second call is made when the
first one hangs, and returns all other domains.
"""

from collections.abc import Collection
import typing as ty

import libvirt

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import calls as libvirt_calls

_FLAGS = (
    libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE
    | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
)
# Most concurrent calls that hang.
_SLOTS = tuple(('disks', slot) for slot in range(3))


def read_counters(
    calls: libvirt_calls.LibvirtCalls,
    connection: libvirt.virConnect,
    uuids: Collection[str],
) -> dict[str, dict[str, base.DiskCounters]]:
    """Return counters by domain and disk.

    :param uuids: the domains; those that do not answer now are left out.
    :raises base.HypervisorUnavailable: when the daemon does not answer.
    """

    def query() -> list[tuple[ty.Any, dict[str, ty.Any]]]:
        wanted = [
            one
            for one in connection.listAllDomains(
                libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
            )
            if one.UUIDString() in uuids
        ]
        if not wanted:
            return []
        return ty.cast(
            list[tuple[ty.Any, dict[str, ty.Any]]],
            connection.domainListGetStats(
                wanted, libvirt.VIR_DOMAIN_STATS_BLOCK, _FLAGS
            ),
        )

    overdue = calls.bounded.overdue
    slot = next((one for one in _SLOTS if one not in overdue), _SLOTS[0])
    found = {}
    for domain, stats in calls.run(slot, connection, query):
        counters = read(stats)
        if counters:
            found[domain.UUIDString()] = counters
    return found


def read(stats: dict[str, ty.Any]) -> dict[str, base.DiskCounters]:
    """Return one domain's disk counters by name.

    :param stats: libvirt's: ``block.N.rd.reqs`` and so on. Disks without
        counters, such as an empty drive, are left out.
    """
    found = {}
    for number in range(stats.get('block.count', 0)):
        prefix = 'block.%d.' % number
        name, reads, writes = (
            stats.get(prefix + key) for key in ('name', 'rd.reqs', 'wr.reqs')
        )
        if name is not None and reads is not None and writes is not None:
            found[name] = base.DiskCounters(reads, writes)
    return found
