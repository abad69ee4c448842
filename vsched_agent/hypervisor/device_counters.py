# SPDX-License-Identifier: Apache-2.0

"""The devices of one domain that vsched itself runs."""

from collections.abc import Mapping
import dataclasses
from xml.etree import ElementTree

import libvirt

from vsched_agent.hypervisor import base

# Indexes in the result of libvirt's blockStats.
_READS, _WRITES = 0, 2


@dataclasses.dataclass(frozen=True, slots=True)
class Devices:
    """The names of a domain's devices.

    :param interfaces: on the host.
    :param disks: as in libvirt's statistics.
    """

    interfaces: tuple[str, ...]
    disks: tuple[str, ...]

    @classmethod
    def of(cls, domain: libvirt.virDomain) -> 'Devices':
        """Return those of a running domain."""
        root = ElementTree.fromstring(domain.XMLDesc(0))
        return cls(
            *(
                tuple(
                    target.get('dev', '')
                    for target in root.findall('devices/%s/target' % kind)
                )
                for kind in ('interface', 'disk')
            )
        )

    def read_disks(
        self, domain: libvirt.virDomain
    ) -> Mapping[str, base.DiskCounters]:
        """Return the counters of its disks since it started."""
        found = {}
        for name in self.disks:
            stats = domain.blockStats(name)
            found[name] = base.DiskCounters(stats[_READS], stats[_WRITES])
        return found
