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

"""One balloon from its first step to its last, or back.

Every step may take as long as a guest likes, so each runs in a thread that
has nothing else to do. What was noted before the first step is enough for
another agent to go back.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.hypervisor import channel as channels
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)


class StepFailed(Exception):
    """A balloon did not get where it should.

    :ivar stuck: whether something is left that has to be put back later.
    :ivar code: what kind of failure it was.
    """

    def __init__(self, detail: str, stuck: bool,
                 code: errors.Code = errors.Code.BALLOON_FAILED) -> None:
        super().__init__(detail)
        self.stuck = stuck
        self.code = code

    @classmethod
    def of(cls, failure: channels.ChannelFailed, stuck: bool) -> ty.Self:
        """A guest did not do what it was told."""
        return cls(str(failure), stuck, errors.Code.BALLOON_GUEST_MUTE
                   if isinstance(failure, channels.GuestMute)
                   else errors.Code.BALLOON_FAILED)


@dataclasses.dataclass(frozen=True, slots=True)
class Keep:
    """What an instance is left with.

    :param online: its vCPUs.
    :param pins: CPU by vCPU; empty binds none.
    :param cause: why.
    :param manual: whether an operator ordered it.
    :param unplug: whether the others are unplugged, as its guest can not be
        told.
    """

    online: frozenset[int]
    pins: Mapping[int, int]
    cause: str
    manual: bool = False
    unplug: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """A balloon that was made, and how long it took.

    :param offline_s: from the command until the guest was verified.
    :param unbindable: its vCPUs should have been bound and could not.
    """

    record: base.Record
    offline_s: float
    unbindable: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Met:
    """What was found of an instance that nothing was known of.

    :param offline: vCPUs that it did not use; now it does.
    :param unplug: whether its guest does not answer, and its vCPUs can be
        unplugged.
    """

    offline: frozenset[int]
    unplug: bool = False


class Steps:
    """Takes vCPUs and gives them back. Safe from any thread.

    :param channel: the way to the guests.
    :param hands: what is done on the host.
    :param memory: what outlives this process.
    :param settings: how long a guest may take, and whether to bind.
    """

    def __init__(self, channel: channels.VcpuChannel, hands: base.Hands,
                 memory: base.Memory, settings: base.Settings) -> None:
        self._channel = channel
        self._hands = hands
        self._memory = memory
        self._settings = settings

    def records(self) -> list[base.Record]:
        """What has to be put back, by an earlier agent's word too."""
        found = []
        for body in self._memory.balloons():
            try:
                found.append(base.Record.from_dict(body))
            except (KeyError, TypeError, ValueError) as error:
                LOG.error('the journal holds a balloon %r: %r', body, error)
        return found

    def shrink(self, domain: hypervisor.Domain, part: Keep,
               previous: base.Record | None = None) -> Taken:
        """Leave an instance with some of its vCPUs only.

        :param part: which, and where.
        :param previous: the balloon that is in force, if there is one; this
            one may take more vCPUs, or fewer.
        :raises StepFailed: then it has all of them, or is stuck.
        """
        began_s = time.monotonic()
        try:
            unplugged = previous.unplugged if previous else part.unplug
            way = self._way(unplugged)
            guest = way.ask(domain.uuid, self._settings.guest_timeout_s)
        except channels.ChannelFailed as failure:
            raise StepFailed.of(failure, previous is not None) from failure
        pins, found = self._pinned(domain, part.pins, previous)
        record = base.Record(
            domain.uuid, domain.pid, previous.configured
            if previous and unplugged
            else tuple(vcpu.index for vcpu in domain.vcpus),
            tuple(sorted(part.online)), pins, found, part.cause,
            previous.at if previous else time.time(), part.manual,
            unplugged)
        self._memory.note_balloon(domain.uuid, record.to_dict())
        try:
            timeout_s = self._settings.guest_timeout_s
            with self._hands.hastened(domain, timeout_s):
                way.set_online(domain.uuid, part.online, timeout_s, guest)
        except channels.ChannelFailed as failure:
            if previous is not None:
                # One way or the other it is not what either record says.
                raise StepFailed.of(failure, True) from failure
            if failure.undone:
                self._memory.forget_balloon(domain.uuid)
            raise StepFailed.of(failure, not failure.undone) from failure
        offline_s = time.monotonic() - began_s
        try:
            # The threads that are left first get what the others had.
            self._hands.reshape(
                domain.uuid, record, None if pins else previous)
            if pins:
                self._hands.bind(domain, pins)
        except errors.Refused as refusal:
            raise StepFailed(
                refusal.detail, not self._gave_back(record),
                refusal.code) from refusal
        return Taken(record, offline_s, bool(
            part.pins and self._settings.bind and not pins))

    def _way(self, unplug: bool) -> channels.VcpuChannel:
        """How vCPUs are taken, and given back.

        :raises channels.GuestMute: when there is no such way any more.
        """
        if not unplug:
            return self._channel
        if self._channel.unplugging is None:
            raise channels.GuestMute('vCPUs can not be plugged here')
        return self._channel.unplugging

    def _pinned(self, domain: hypervisor.Domain, pins: Mapping[int, int],
                previous: base.Record | None,
                ) -> tuple[dict[int, int], Sequence[Mapping[str, ty.Any]]]:
        known = list(previous.found) if previous else []
        if not (pins and self._settings.bind):
            return {}, known
        # One that an earlier balloon has bound is not as it was found, even
        # if the last one did without it.
        tids = {one['tid'] for one in known}
        found = self._hands.found(domain, sorted(
            vcpu.index for vcpu in domain.vcpus
            if vcpu.index in pins and vcpu.tid not in tids))
        if found is None:
            return {}, known
        return dict(pins), [*known, *found]

    def grow(self, record: base.Record, strayed: bool = False) -> None:
        """Give an instance all of its vCPUs again.

        :param strayed: whether it uses them already, without anybody's
            leave; then they get their reservation back first.
        :raises StepFailed: when it has to be tried again.
        """
        if strayed:
            self._release(record)
        timeout_s = self._settings.guest_timeout_s
        try:
            # Some may have been plugged in meanwhile.
            way = self._way(record.unplugged)
            guest = way.ask(record.instance_uuid, timeout_s)
            missing = frozenset(record.configured) & guest.unplugged
            way.set_online(record.instance_uuid, guest.all | (
                missing if record.unplugged else frozenset()),
                timeout_s, guest)
        except channels.ChannelFailed as failure:
            raise StepFailed.of(failure, True) from failure
        if not strayed:
            self._release(record)
        self._memory.forget_balloon(record.instance_uuid)

    def heal(self, domain: hypervisor.Domain,
             unplug: bool = False) -> Met:
        """Have a guest that nothing is known of use all of its vCPUs.

        It may have come from another host in the middle of a balloon.

        :param unplug: whether vCPUs may be unplugged should it not answer.
        :raises channels.ChannelFailed: when it can not be told.
        """
        timeout_s = self._settings.guest_timeout_s
        self._hands.prepare()
        try:
            guest = self._channel.ask(domain.uuid, timeout_s)
        except channels.GuestMute:
            if not unplug or self._channel.unplugging is None:
                raise
            self._channel.unplugging.ask(domain.uuid, timeout_s)
            return Met(frozenset(), True)
        if guest.offline:
            self._channel.set_online(
                domain.uuid, guest.all, timeout_s, guest)
        return Met(guest.offline)

    def strayed(self, record: base.Record) -> bool:
        """Whether the guest uses others than it should.

        :raises channels.ChannelFailed: when it does not say.
        """
        return self._way(record.unplugged).ask(
            record.instance_uuid, self._settings.guest_timeout_s,
        ).online != frozenset(record.online)

    def note(self, record: base.Record) -> None:
        """More is known of a balloon that is in force."""
        self._memory.note_balloon(record.instance_uuid, record.to_dict())

    def forget(self, uuid: str) -> None:
        """The process is gone, and everything that was done to it."""
        self._hands.forget(uuid)
        self._memory.forget_balloon(uuid)

    def _release(self, record: base.Record) -> None:
        try:
            self._hands.reshape(record.instance_uuid, None, record)
        except errors.Refused as refusal:
            # The reconciler goes on trying, as with any refusal.
            LOG.warning('instance %s: %s', record.instance_uuid,
                        refusal.detail)

    def _gave_back(self, record: base.Record) -> bool:
        try:
            self.grow(record)
        except StepFailed as failure:
            LOG.warning('instance %s is stuck: %s', record.instance_uuid,
                        failure)
            return False
        return True
