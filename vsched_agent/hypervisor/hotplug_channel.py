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

"""The channel for guests without an agent: vCPUs are plugged and unplugged.

Only those that the definition declares as hotpluggable. What counts is what
QEMU has: it takes a vCPU away when the guest has let go of it (ACPI), and no
earlier. libvirt waits five seconds for a word that QEMU 7.2 never says when
it emulates, calls that a time-out, and goes on counting the vCPU: it can not
be had back, and plugging it in behind libvirt's back ends that QEMU. So a
host where this was seen once unplugs nothing any more.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import typing as ty

import libvirt

from vsched_agent.hypervisor import channel
from vsched_agent.hypervisor import definition
from vsched_agent.hypervisor import qemu_monitor

T = ty.TypeVar('T')

#: What libvirt may wait for on top of what it is given, in seconds.
_MARGIN_S = 6.0
_LIVE = libvirt.VIR_DOMAIN_AFFECT_LIVE


class Call(ty.Protocol):
    """Calls libvirt, and makes failures of a channel of its own."""

    def __call__(self, key: str, timeout_s: float,
                 function: Callable[[libvirt.virConnect], T]) -> T:
        """What the function returns.

        :raises channel.ChannelFailed: when it fails, or takes too long.
        """


class HotplugChannel(channel.VcpuChannel):
    """vCPUs come and go with the threads that run them.

    :param call: how libvirt is called; whoever made it starts and stops it.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        # Why nothing is unplugged any more.
        self._unfit: str | None = None

    def start(self) -> None:
        """There is nothing of its own to start."""

    def stop(self) -> None:
        """Likewise."""

    def ask(self, uuid: str, timeout_s: float) -> channel.GuestVcpus:
        def look(connection: libvirt.virConnect) -> channel.GuestVcpus:
            domain = connection.lookupByUUIDString(uuid)
            return _state(domain)

        return self._call(uuid, timeout_s, look)

    def tell(self, uuid: str, online: Mapping[int, bool],
             timeout_s: float) -> None:
        def change(connection: libvirt.virConnect) -> None:
            domain = connection.lookupByUUIDString(uuid)
            for index, wanted in online.items():
                if wanted:
                    _plug(domain, index)
                else:
                    self._unplug(domain, index)

        if online:
            self._call(uuid, timeout_s + _MARGIN_S * len(online), change)

    def _unplug(self, domain: libvirt.virDomain, index: int) -> None:
        if self._unfit is not None:
            raise channel.ChannelFailed(self._unfit)
        try:
            domain.setVcpu(str(index), 0, _LIVE)
        except libvirt.libvirtError as error:
            if index in qemu_monitor.vcpus(domain):
                raise
            self._unfit = (
                'QEMU let go of vCPU %d of %s and libvirt does not know '
                '(%s): nothing is unplugged on this host until its agent is '
                'started anew' % (index, domain.name(), error))
            raise channel.ChannelFailed(self._unfit) from error

    def progress(self, uuid: str, path: str,
                 timeout_s: float) -> int | None:
        """Nobody reads a file without the guest's help."""
        return None

    def yields(self, uuids: Collection[str],
               ) -> Mapping[str, Mapping[int, int]]:
        """The other channel has them."""
        return {}


def _state(domain: libvirt.virDomain) -> channel.GuestVcpus:
    try:
        hotpluggable = definition.hotpluggable(domain.XMLDesc(0))
        plugged = frozenset(qemu_monitor.vcpus(domain))
    except (definition.UnreadableDefinition,
            qemu_monitor.UnexpectedAnswer) as error:
        raise channel.ChannelFailed(str(error)) from error
    if not hotpluggable & plugged - {0} and not hotpluggable - plugged:
        raise channel.ChannelFailed(
            'no vCPU is declared as hotpluggable')
    return channel.GuestVcpus(
        plugged, frozenset(), (plugged - hotpluggable) | {0},
        hotpluggable - plugged)


def _plug(domain: libvirt.virDomain, index: int) -> None:
    if index not in qemu_monitor.vcpus(domain):
        domain.setVcpu(str(index), 1, _LIVE)
