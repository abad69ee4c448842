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

"""The seam through which a guest is made to use more or fewer vCPUs."""

import abc
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import threading
import time

#: Between two looks at a guest that does not do yet what it was told.
_LOOK_S = 0.1
#: What undoing a step may take at most, when the step's own time is up.
_UNDO_S = 5.0


class ChannelFailed(Exception):
    """A guest did not do what it was told; it has what it had before.

    :ivar undone: False when it could not even be given back that.
    """

    def __init__(self, detail: str, undone: bool = True) -> None:
        super().__init__(detail)
        self.undone = undone


class GuestMute(ChannelFailed):
    """Nobody in the guest answers, or it does not run."""


@dataclasses.dataclass(frozen=True, slots=True)
class GuestVcpus:
    """What a guest says of its vCPUs.

    :param online: those that it uses.
    :param offline: those that it has and does not use.
    :param fixed: those that it can not stop using.
    :param unplugged: those that can be plugged in, and are not.
    """

    online: frozenset[int]
    offline: frozenset[int] = frozenset()
    fixed: frozenset[int] = frozenset()
    unplugged: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """Every vCPU that is plugged in."""
        return self.online | self.offline


class VcpuChannel(abc.ABC):
    """A way to a guest. All calls are safe from any thread.

    One guest that hangs delays nobody but who asks it.
    """

    #: For guests that do not answer, where there is another way.
    unplugging: 'VcpuChannel | None' = None

    @abc.abstractmethod
    def start(self) -> None:
        """Begin to be of use; nothing has to be there yet."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Let go of everything."""

    @abc.abstractmethod
    def ask(self, uuid: str, timeout_s: float) -> GuestVcpus:
        """What a guest uses, by its own word.

        :raises GuestMute: when it does not answer in time.
        :raises ChannelFailed: when its answer makes no sense.
        """

    @abc.abstractmethod
    def tell(self, uuid: str, online: Mapping[int, bool],
             timeout_s: float) -> None:
        """Tell a guest to use vCPUs, or not to; in the given order.

        Whether it does is another question; see :meth:`set_online`.

        :raises GuestMute: when it does not answer in time.
        :raises ChannelFailed: when it says no.
        """

    @abc.abstractmethod
    def progress(self, uuid: str, path: str,
                 timeout_s: float) -> int | None:
        """The number in a file of a guest; None when there is none.

        :raises GuestMute: when it does not answer in time.
        """

    @abc.abstractmethod
    def yields(self, uuids: Collection[str]) -> Mapping[
            str, Mapping[int, int]]:
        """By guest and vCPU, how often the host tried to yield its CPU.

        Counted since its start; guests of which that is not known are left
        out.
        """

    def set_online(self, uuid: str, wanted: frozenset[int],
                   timeout_s: float,
                   before: GuestVcpus | None = None) -> GuestVcpus:
        """Make a guest use these vCPUs and no others.

        Idempotent. When it returns, the guest has said that it does. When
        it does not, it is told to use what it used before.

        :param timeout_s: longest time for all of it, in seconds.
        :param before: what it was just seen to use, if anybody asked.
        :returns: what the guest uses now.
        :raises GuestMute: when it does not answer in time.
        :raises ChannelFailed: when it does not do it.
        """
        limit_s = time.monotonic() + timeout_s
        if before is None:
            before = self.ask(uuid, timeout_s)
        _check(before, wanted)
        if before.online == wanted:
            return before
        try:
            return self._step(uuid, before, wanted, limit_s)
        except ChannelFailed as failure:
            undone = self._undo(uuid, before)
            raise type(failure)(str(failure), undone) from failure

    def _step(self, uuid: str, before: GuestVcpus, wanted: frozenset[int],
              limit_s: float) -> GuestVcpus:
        found = before
        never = threading.Event()
        while True:
            self.tell(uuid, _changes(found, wanted), _left(limit_s))
            found = self.ask(uuid, _left(limit_s))
            if found.online == wanted:
                return found
            if time.monotonic() + _LOOK_S > limit_s:
                raise ChannelFailed(
                    'the guest was told to use vCPUs %s and uses %s' % (
                        sorted(wanted), sorted(found.online)))
            never.wait(_LOOK_S)

    def _undo(self, uuid: str, before: GuestVcpus) -> bool:
        limit_s = time.monotonic() + _UNDO_S
        try:
            found = self.ask(uuid, _UNDO_S)
            if found.online != before.online:
                self.tell(uuid, _changes(found, before.online),
                          _left(limit_s))
                found = self.ask(uuid, _left(limit_s))
        except ChannelFailed:
            return False
        return found.online == before.online


def _check(guest: GuestVcpus, wanted: frozenset[int]) -> None:
    if not wanted:
        raise ChannelFailed('a guest can not do without any vCPU')
    if wanted - guest.all - guest.unplugged:
        raise ChannelFailed('the guest has no vCPUs %s; it has %s' % (
            sorted(wanted - guest.all), sorted(guest.all)))
    stuck = (guest.online & guest.fixed) - wanted
    if stuck:
        raise ChannelFailed(
            'the guest can not stop using vCPUs %s' % sorted(stuck))


def _changes(guest: GuestVcpus, wanted: frozenset[int]) -> dict[int, bool]:
    # The highest go first, and come last.
    return {**dict.fromkeys(sorted(
        guest.online - wanted, reverse=True), False),
        **dict.fromkeys(sorted(wanted - guest.online), True)}


def _left(limit_s: float) -> float:
    return max(1.0, limit_s - time.monotonic())
