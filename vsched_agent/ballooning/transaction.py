# SPDX-License-Identifier: Apache-2.0

"""Make and undo balloons step by step.

A step may wait for a guest, so each runs in a thread of its own. The record
stored before the first step suffices for another agent to undo it.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.ballooning import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)


class TransactionFailed(Exception):
    """A transaction failed.

    :ivar stuck: whether something remains that must be undone later.
    :ivar code: what kind of failure it was.
    """

    def __init__(
        self,
        detail: str,
        stuck: bool,
        code: errors.Code = errors.Code.BALLOON_FAILED,
    ) -> None:
        super().__init__(detail)
        self.stuck = stuck
        self.code = code

    @classmethod
    def of(cls, failure: channels.ChannelFailed, stuck: bool) -> ty.Self:
        """Return the failure of a guest to apply a change."""
        return cls(
            str(failure),
            stuck,
            errors.Code.BALLOON_GUEST_AGENT_UNAVAILABLE
            if isinstance(failure, channels.GuestAgentUnavailable)
            else errors.Code.BALLOON_FAILED,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonTarget:
    """What an instance is left with.

    :param online: its vCPUs.
    :param pins: CPU by vCPU; empty binds none.
    :param cause: why.
    :param manual: whether an operator ordered it.
    """

    online: frozenset[int]
    pins: Mapping[int, int]
    cause: str
    manual: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class BalloonResult:
    """A balloon that was made, and how long it took.

    :param offline_s: from the command until the guest was verified.
    :param unbindable: its vCPUs should have been bound and could not.
    """

    record: base.Record
    offline_s: float
    unbindable: bool = False


class BalloonTransactions:
    """Takes vCPUs and gives them back. Thread-safe.

    :param channel: the channel to the guests.
    :param host: actions on the host.
    :param store: persistent storage of records.
    :param settings: how long a guest may take, and whether to bind.
    """

    def __init__(
        self,
        channel: channels.VcpuChannel,
        host: base.HostActions,
        store: base.RecordStore,
        settings: base.Settings,
    ) -> None:
        self._channel = channel
        self._host = host
        self._store = store
        self._settings = settings

    def records(self) -> list[base.Record]:
        """Return the balloons in force, also those of an earlier agent."""
        found = []
        for body in self._store.balloons():
            try:
                found.append(base.Record.from_dict(body))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                LOG.error('the journal holds a balloon %r: %r', body, error)
        return found

    def shrink(
        self,
        domain: hypervisor.Domain,
        target: BalloonTarget,
        previous: base.Record | None = None,
    ) -> BalloonResult:
        """Leave an instance with some of its vCPUs.

        :param target: which, and where.
        :param previous: the current balloon, if there is one; the new one may
            take more vCPUs, or fewer.
        :raises TransactionFailed: afterwards it has all vCPUs, or is stuck.
        """
        began_s = time.monotonic()
        try:
            guest = self._channel.get_vcpus(
                domain.uuid, self._settings.guest_timeout_s
            )
        except channels.ChannelFailed as failure:
            raise TransactionFailed.of(
                failure, previous is not None
            ) from failure
        pins, found = self._pins(domain, target.pins, previous)
        record = base.Record(
            domain.uuid,
            domain.pid,
            tuple(vcpu.index for vcpu in domain.vcpus),
            tuple(sorted(target.online)),
            pins,
            found,
            target.cause,
            previous.at if previous else time.time(),
            target.manual,
        )
        self._store.note_balloon(domain.uuid, record.to_dict())
        try:
            timeout_s = self._settings.guest_timeout_s
            with self._host.preempt_faster(domain, timeout_s):
                self._channel.set_online(
                    domain.uuid, target.online, timeout_s, guest
                )
        except channels.ChannelFailed as failure:
            if previous is not None:
                # Neither record describes the result.
                raise TransactionFailed.of(failure, True) from failure
            if failure.undone:
                self._store.forget_balloon(domain.uuid)
            raise TransactionFailed.of(
                failure, not failure.undone
            ) from failure
        offline_s = time.monotonic() - began_s
        try:
            # Move the reservation before binding the remaining threads.
            self._host.move_reservation(
                domain.uuid, record, None if pins else previous
            )
            if pins:
                self._host.bind(domain, pins)
        except errors.Refused as refusal:
            raise TransactionFailed(
                refusal.detail, not self._undone(record), refusal.code
            ) from refusal
        return BalloonResult(
            record,
            offline_s,
            bool(target.pins and self._settings.bind and not pins),
        )

    def _pins(
        self,
        domain: hypervisor.Domain,
        pins: Mapping[int, int],
        previous: base.Record | None,
    ) -> tuple[dict[int, int], Sequence[Mapping[str, ty.Any]]]:
        known = list(previous.found) if previous else []
        if not (pins and self._settings.bind):
            return {}, known
        # Keep the affinity from before the first balloon, even of a thread
        # that the last one has not bound.
        tids = {one['tid'] for one in known}
        found = self._host.found(
            domain,
            sorted(
                vcpu.index
                for vcpu in domain.vcpus
                if vcpu.index in pins and vcpu.tid not in tids
            ),
        )
        if found is None:
            return {}, known
        return dict(pins), [*known, *found]

    def grow(
        self, record: base.Record, unexpected_online: bool = False
    ) -> None:
        """Give an instance all of its vCPUs back.

        :param unexpected_online: whether it uses them already; then the
            reservation is moved back first.
        :raises TransactionFailed: when it has to be retried.
        """
        if unexpected_online:
            self._release(record)
        timeout_s = self._settings.guest_timeout_s
        try:
            # vCPUs may have been plugged meanwhile.
            guest = self._channel.get_vcpus(record.instance_uuid, timeout_s)
            self._channel.set_online(
                record.instance_uuid, guest.all, timeout_s, guest
            )
        except channels.ChannelFailed as failure:
            raise TransactionFailed.of(failure, True) from failure
        if not unexpected_online:
            self._release(record)
        self._store.forget_balloon(record.instance_uuid)

    def bring_all_online(self, domain: hypervisor.Domain) -> frozenset[int]:
        """Make a guest without a record use all of its vCPUs.

        It may have migrated here with a balloon.

        :returns: vCPUs that it did not use; now it does.
        :raises channels.ChannelFailed: when it does not apply that.
        """
        timeout_s = self._settings.guest_timeout_s
        self._host.prepare()
        guest = self._channel.get_vcpus(domain.uuid, timeout_s)
        if guest.offline:
            self._channel.set_online(domain.uuid, guest.all, timeout_s, guest)
        return guest.offline

    def unexpected_online(self, record: base.Record) -> bool:
        """Return whether the guest uses other vCPUs than recorded.

        :raises channels.ChannelFailed: when it does not answer.
        """
        return self._channel.get_vcpus(
            record.instance_uuid, self._settings.guest_timeout_s
        ).online != frozenset(record.online)

    def note(self, record: base.Record) -> None:
        """Update the record of a balloon in force."""
        self._store.note_balloon(record.instance_uuid, record.to_dict())

    def forget(self, uuid: str) -> None:
        """Forget an instance whose process has ended."""
        self._host.forget(uuid)
        self._store.forget_balloon(uuid)

    def _release(self, record: base.Record) -> None:
        try:
            self._host.move_reservation(record.instance_uuid, None, record)
        except errors.Refused as refusal:
            # The reconciler retries, as after any refusal.
            LOG.warning(
                'instance %s: %s', record.instance_uuid, refusal.detail
            )

    def _undone(self, record: base.Record) -> bool:
        try:
            self.grow(record)
        except TransactionFailed as failure:
            LOG.warning(
                'instance %s is stuck: %s', record.instance_uuid, failure
            )
            return False
        return True
