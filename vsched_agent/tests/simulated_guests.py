# SPDX-License-Identifier: Apache-2.0

"""Guests that exist only as far as a channel can see: for tests."""

from collections.abc import Collection
from collections.abc import Mapping
import threading

from vsched_agent.hypervisor import vcpu_channel


class SimulatedGuests(vcpu_channel.VcpuChannel):
    """Guests that do what they are told, unless told otherwise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guests: dict[str, vcpu_channel.GuestVcpus] = {}
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
            self._guests[uuid] = vcpu_channel.GuestVcpus(
                frozenset(range(vcpus)), frozenset(), frozenset({0})
            )

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

    def get_vcpus(
        self, uuid: str, timeout_s: float
    ) -> vcpu_channel.GuestVcpus:
        with self._lock:
            if uuid in self.mute or uuid not in self._guests:
                raise vcpu_channel.GuestAgentUnavailable(
                    'guest %s does not answer' % uuid
                )
            return self._guests[uuid]

    def set_vcpus(
        self, uuid: str, online: Mapping[int, bool], timeout_s: float
    ) -> None:
        guest = self.get_vcpus(uuid, timeout_s)
        with self._lock:
            self.told.append((uuid, dict(online)))
            for index, wanted in online.items():
                if index not in guest.all or (
                    not wanted and index in guest.fixed
                ):
                    raise vcpu_channel.ChannelFailed(
                        'guest %s can not do that to vCPU %d' % (uuid, index)
                    )
            if uuid in self.ignoring:
                return
            now = {
                index
                for index in guest.all
                if online.get(index, index in guest.online)
            }
            self._guests[uuid] = vcpu_channel.GuestVcpus(
                frozenset(now), guest.all - now, guest.fixed
            )

    def progress(self, uuid: str, path: str, timeout_s: float) -> int | None:
        self.get_vcpus(uuid, timeout_s)
        return self._progress.get((uuid, path))

    def yields(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[int, int]]:
        return {
            uuid: dict(self._yields[uuid])
            for uuid in uuids
            if uuid in self._yields
        }
