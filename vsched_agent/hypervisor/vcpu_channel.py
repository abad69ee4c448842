# SPDX-License-Identifier: Apache-2.0

"""The interface for changing the number of vCPUs that a guest uses."""

import abc
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import threading
import time

#: Interval of polling a guest until it has applied a change, in seconds.
_POLL_S = 0.1
#: Longest time for undoing a change after its timeout, in seconds.
_UNDO_S = 5.0


class ChannelFailed(Exception):
    """A guest did not apply a change; its former state is restored.

    :ivar undone: False when the restore failed as well.
    """

    def __init__(self, detail: str, undone: bool = True) -> None:
        super().__init__(detail)
        self.undone = undone


class GuestAgentUnavailable(ChannelFailed):
    """The guest agent does not answer, or the guest does not run."""


@dataclasses.dataclass(frozen=True, slots=True)
class GuestVcpus:
    """A guest's vCPUs as its agent reports them.

    :param online: those that it uses.
    :param offline: those that it has and does not use.
    :param fixed: those that it cannot take offline.
    """

    online: frozenset[int]
    offline: frozenset[int] = frozenset()
    fixed: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """Every vCPU that it has."""
        return self.online | self.offline


class VcpuChannel(abc.ABC):
    """A channel to guests. Thread-safe.

    A guest that hangs delays only calls for that guest.
    """

    @abc.abstractmethod
    def start(self) -> None:
        """Start; neither hypervisor nor guests have to run yet."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Release all resources."""

    @abc.abstractmethod
    def get_vcpus(self, uuid: str, timeout_s: float) -> GuestVcpus:
        """Ask a guest for its vCPUs.

        :raises GuestAgentUnavailable: when it does not answer in time.
        :raises ChannelFailed: when its answer is invalid.
        """

    @abc.abstractmethod
    def set_vcpus(
        self, uuid: str, online: Mapping[int, bool], timeout_s: float
    ) -> None:
        """Have a guest take vCPUs online or offline, in the given order.

        The result is not verified; see :meth:`set_online`.

        :raises GuestAgentUnavailable: when it does not answer in time.
        :raises ChannelFailed: when it refuses.
        """

    @abc.abstractmethod
    def progress(self, uuid: str, path: str, timeout_s: float) -> int | None:
        """Return the number in a guest's file; None when there is none.

        :raises GuestAgentUnavailable: when it does not answer in time.
        """

    @abc.abstractmethod
    def yields(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[int, int]]:
        """Return attempted directed yields by guest and vCPU.

        Counted since the guest's start; guests without these counters are
        left out.
        """

    def set_online(
        self,
        uuid: str,
        wanted: frozenset[int],
        timeout_s: float,
        before: GuestVcpus | None = None,
    ) -> GuestVcpus:
        """Make a guest use these vCPUs and no others.

        Idempotent. The guest has confirmed the change on return; after a
        failure it is set back to its former vCPUs.

        :param timeout_s: longest time for all steps, in seconds.
        :param before: its vCPUs, if just read.
        :returns: the vCPUs that the guest uses now.
        :raises GuestAgentUnavailable: when it does not answer in time.
        :raises ChannelFailed: when it does not apply the change.
        """
        limit_s = time.monotonic() + timeout_s
        if before is None:
            before = self.get_vcpus(uuid, timeout_s)
        _validate(before, wanted)
        if before.online == wanted:
            return before
        try:
            return self._step(uuid, before, wanted, limit_s)
        except ChannelFailed as failure:
            undone = self._undo(uuid, before)
            raise type(failure)(str(failure), undone) from failure

    def _step(
        self,
        uuid: str,
        before: GuestVcpus,
        wanted: frozenset[int],
        limit_s: float,
    ) -> GuestVcpus:
        found = before
        never = threading.Event()
        while True:
            self.set_vcpus(uuid, _changes(found, wanted), _left(limit_s))
            found = self.get_vcpus(uuid, _left(limit_s))
            if found.online == wanted:
                return found
            if time.monotonic() + _POLL_S > limit_s:
                raise ChannelFailed(
                    'the guest was set to use vCPUs %s and uses %s'
                    % (sorted(wanted), sorted(found.online))
                )
            never.wait(_POLL_S)

    def _undo(self, uuid: str, before: GuestVcpus) -> bool:
        limit_s = time.monotonic() + _UNDO_S
        try:
            found = self.get_vcpus(uuid, _UNDO_S)
            if found.online != before.online:
                self.set_vcpus(
                    uuid, _changes(found, before.online), _left(limit_s)
                )
                found = self.get_vcpus(uuid, _left(limit_s))
        except ChannelFailed:
            return False
        return found.online == before.online


def _validate(guest: GuestVcpus, wanted: frozenset[int]) -> None:
    if not wanted:
        raise ChannelFailed('a guest needs at least one vCPU')
    if wanted - guest.all:
        raise ChannelFailed(
            'the guest has no vCPUs %s; it has %s'
            % (sorted(wanted - guest.all), sorted(guest.all))
        )
    stuck = (guest.online & guest.fixed) - wanted
    if stuck:
        raise ChannelFailed(
            'the guest cannot take vCPUs %s offline' % sorted(stuck)
        )


def _changes(guest: GuestVcpus, wanted: frozenset[int]) -> dict[int, bool]:
    # The highest go offline first, and online last.
    return {
        **dict.fromkeys(sorted(guest.online - wanted, reverse=True), False),
        **dict.fromkeys(sorted(wanted - guest.online), True),
    }


def _left(limit_s: float) -> float:
    return max(1.0, limit_s - time.monotonic())
