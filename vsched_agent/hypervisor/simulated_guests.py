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

"""Guests that exist only as far as a channel can see: for tests."""

from collections.abc import Collection
from collections.abc import Mapping
import threading

from vsched_agent.hypervisor import channel


class SimulatedGuests(channel.VcpuChannel):
    """Guests that do what they are told, unless told otherwise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guests: dict[str, channel.GuestVcpus] = {}
        self._progress: dict[tuple[str, str], int] = {}
        self._yields: dict[str, dict[int, int]] = {}
        #: Guests whose agent does not answer.
        self.mute: set[str] = set()
        #: Guests that say yes and do nothing.
        self.ignoring: set[str] = set()
        #: What guests were told, oldest first.
        self.told: list[tuple[str, dict[int, bool]]] = []

    # What happens to the guests

    def boot(self, uuid: str, vcpus: int) -> None:
        """A guest comes up, and uses all of its vCPUs."""
        with self._lock:
            self._guests[uuid] = channel.GuestVcpus(
                frozenset(range(vcpus)), frozenset(), frozenset({0}))

    def plug(self, uuid: str, vcpus: frozenset[int]) -> None:
        """A guest has these vCPUs, and uses them."""
        with self._lock:
            self._guests[uuid] = channel.GuestVcpus(
                vcpus, frozenset(), frozenset({0}))

    def end(self, uuid: str) -> None:
        """A guest is gone."""
        with self._lock:
            self._guests.pop(uuid, None)

    def online(self, uuid: str) -> frozenset[int]:
        """What a guest uses."""
        with self._lock:
            return self._guests[uuid].online

    def set_progress(self, uuid: str, path: str, value: int) -> None:
        """A guest's counter has come that far."""
        self._progress[uuid, path] = value

    def set_yields(self, uuid: str, counters: Mapping[int, int]) -> None:
        """The host has tried to yield a guest's vCPUs so often."""
        self._yields[uuid] = dict(counters)

    # The seam

    def start(self) -> None:
        """There is nothing to wait for."""

    def stop(self) -> None:
        """There is nothing to let go of."""

    def ask(self, uuid: str, timeout_s: float) -> channel.GuestVcpus:
        with self._lock:
            if uuid in self.mute or uuid not in self._guests:
                raise channel.GuestMute('guest %s does not answer' % uuid)
            return self._guests[uuid]

    def tell(self, uuid: str, online: Mapping[int, bool],
             timeout_s: float) -> None:
        guest = self.ask(uuid, timeout_s)
        with self._lock:
            self.told.append((uuid, dict(online)))
            for index, wanted in online.items():
                if index not in guest.all or (
                        not wanted and index in guest.fixed):
                    raise channel.ChannelFailed(
                        'guest %s can not do that to vCPU %d' % (
                            uuid, index))
            if uuid in self.ignoring:
                return
            now = {index for index in guest.all
                   if online.get(index, index in guest.online)}
            self._guests[uuid] = channel.GuestVcpus(
                frozenset(now), guest.all - now, guest.fixed)

    def progress(self, uuid: str, path: str,
                 timeout_s: float) -> int | None:
        self.ask(uuid, timeout_s)
        return self._progress.get((uuid, path))

    def yields(self, uuids: Collection[str],
               ) -> Mapping[str, Mapping[int, int]]:
        return {uuid: dict(self._yields[uuid]) for uuid in uuids
                if uuid in self._yields}


class SimulatedPlugs(channel.VcpuChannel):
    """Plugs and unplugs vCPUs of simulated guests, whoever answers.

    :param guests: whose.
    """

    def __init__(self, guests: SimulatedGuests) -> None:
        self._guests = guests
        self._lock = threading.Lock()
        self._plugs: dict[str, tuple[frozenset[int], frozenset[int]]] = {}
        #: Guests that do not let go of a vCPU.
        self.clinging: set[str] = set()

    def declare(self, uuid: str, vcpus: int) -> None:
        """All vCPUs but the first are hotpluggable, and plugged in."""
        with self._lock:
            everything = frozenset(range(vcpus))
            self._plugs[uuid] = everything, everything

    def start(self) -> None:
        """There is nothing to wait for."""

    def stop(self) -> None:
        """There is nothing to let go of."""

    def ask(self, uuid: str, timeout_s: float) -> channel.GuestVcpus:
        with self._lock:
            if uuid not in self._plugs:
                raise channel.ChannelFailed(
                    'guest %s has no hotpluggable vCPU' % uuid)
            everything, plugged = self._plugs[uuid]
            return channel.GuestVcpus(
                plugged, frozenset(), frozenset({0}), everything - plugged)

    def tell(self, uuid: str, online: Mapping[int, bool],
             timeout_s: float) -> None:
        self.ask(uuid, timeout_s)
        with self._lock:
            everything, plugged = self._plugs[uuid]
            if uuid not in self.clinging:
                plugged = frozenset(
                    index for index in everything
                    if online.get(index, index in plugged))
                self._plugs[uuid] = everything, plugged
                self._guests.plug(uuid, plugged)

    def progress(self, uuid: str, path: str,
                 timeout_s: float) -> int | None:
        """Nobody answers."""
        return None

    def yields(self, uuids: Collection[str],
               ) -> Mapping[str, Mapping[int, int]]:
        """Nobody counts."""
        return {}
