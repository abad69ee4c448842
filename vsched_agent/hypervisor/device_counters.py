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

"""The devices of one domain that vsched itself runs."""

from collections.abc import Mapping
import dataclasses
from xml.etree import ElementTree

import libvirt

from vsched_agent.hypervisor import base

# Places in what libvirt's blockStats answers.
_READS, _WRITES = 0, 2


@dataclasses.dataclass(frozen=True, slots=True)
class Devices:
    """What a domain's devices are called.

    :param interfaces: on the host.
    :param disks: as libvirt counts them.
    """

    interfaces: tuple[str, ...]
    disks: tuple[str, ...]

    @classmethod
    def of(cls, domain: libvirt.virDomain) -> 'Devices':
        """Those that a running domain has now."""
        root = ElementTree.fromstring(domain.XMLDesc(0))
        return cls(*(tuple(
            target.get('dev', '') for target in root.findall(
                'devices/%s/target' % kind))
            for kind in ('interface', 'disk')))

    def read_disks(self, domain: libvirt.virDomain,
                   ) -> Mapping[str, base.DiskCounters]:
        """What its disks have done since it started."""
        found = {}
        for name in self.disks:
            stats = domain.blockStats(name)
            found[name] = base.DiskCounters(stats[_READS], stats[_WRITES])
        return found
