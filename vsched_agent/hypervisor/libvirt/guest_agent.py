# SPDX-License-Identifier: Apache-2.0

"""The channel through QEMU's guest agent, by way of libvirt.

It has connections of its own, one for each call: what waits for a guest must
keep neither the driver's calls nor those to other guests waiting.
Each command has a time limit that libvirt keeps, so a guest that hangs does
not stay locked for others (Nova uses the same agent).
"""

import base64
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import json
import math
import re
import typing as ty

import libvirt
import libvirt_qemu
from oslo_log import log as logging

from vsched_agent.hypervisor import answers
from vsched_agent.hypervisor.libvirt import pool
from vsched_agent.hypervisor import vcpu_channel
from vsched_lib import bounded_calls

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')

#: libvirt's own time on top of the guest's: it first synchronizes with the
#: guest for up to five seconds.
_MARGIN_S = 6.0
#: Longest progress counter, in digits.
_MOST_DIGITS = 20
#: More than its length in base64, line end included.
_MOST_ENCODED = 64
_STATS_S = 5.0
_YIELDS = re.compile(r'vcpu\.([0-9]+)\.directed_yield_attempted\.sum\Z')

_UNAVAILABLE = (
    libvirt.VIR_ERR_AGENT_UNRESPONSIVE,
    libvirt.VIR_ERR_AGENT_UNSYNCED,
    libvirt.VIR_ERR_ARGUMENT_UNSUPPORTED,
    libvirt.VIR_ERR_NO_DOMAIN,
    libvirt.VIR_ERR_OPERATION_INVALID,
    libvirt.VIR_ERR_OPERATION_TIMEOUT,
)


class GuestAgentChannel(vcpu_channel.VcpuChannel):
    """Takes vCPUs offline and online through the guest's agent.

    :param uri: libvirt's URI.
    :param keepalive_s: see :class:`connection_pool.ConnectionPool`.
    """

    def __init__(
        self, uri: str = 'qemu:///system', keepalive_s: int = 5
    ) -> None:
        self._pool = pool.ConnectionPool(uri, keepalive_s)
        self._calls: bounded_calls.BoundedCalls | None = None

    def start(self) -> None:
        if self._calls is not None:
            raise RuntimeError('started already')
        self._calls = bounded_calls.BoundedCalls('vsched-guest-call')
        self._pool.start()

    def stop(self) -> None:
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.close()
            self._pool.stop()

    def get_vcpus(
        self, uuid: str, timeout_s: float
    ) -> vcpu_channel.GuestVcpus:
        return parse_vcpus(
            self._command(uuid, 'guest-get-vcpus', {}, timeout_s)
        )

    def set_vcpus(
        self, uuid: str, online: Mapping[int, bool], timeout_s: float
    ) -> None:
        if online:
            # It may apply only the first few; the caller reads the result.
            self._command(
                uuid,
                'guest-set-vcpus',
                {
                    'vcpus': [
                        {'logical-id': index, 'online': wanted}
                        for index, wanted in online.items()
                    ]
                },
                timeout_s,
            )

    def progress(self, uuid: str, path: str, timeout_s: float) -> int | None:
        try:
            handle = _handle(
                self._command(
                    uuid,
                    'guest-file-open',
                    {'path': path, 'mode': 'r'},
                    timeout_s,
                )
            )
            try:
                found = self._command(
                    uuid,
                    'guest-file-read',
                    {'handle': handle, 'count': _MOST_DIGITS + 1},
                    timeout_s,
                )
            finally:
                self._command(
                    uuid, 'guest-file-close', {'handle': handle}, timeout_s
                )
        except vcpu_channel.GuestAgentUnavailable:
            raise
        except vcpu_channel.ChannelFailed as failure:
            # The file does not exist, or the agent may not read it.
            LOG.debug('instance %s has no progress counter: %s', uuid, failure)
            return None
        return parse_progress(found)

    def yields(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[int, int]]:
        def query(connection: libvirt.virConnect) -> list[ty.Any]:
            known = {
                one.UUIDString(): one
                for one in connection.listAllDomains(
                    libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
                )
            }
            asked = [known[uuid] for uuid in uuids if uuid in known]
            # Do not wait for busy domains.
            return (
                connection.domainListGetStats(
                    asked,
                    libvirt.VIR_DOMAIN_STATS_VCPU,
                    libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT,
                )
                if asked
                else []
            )

        try:
            stats = self._call('yields', _STATS_S, query)
        except vcpu_channel.ChannelFailed as failure:
            LOG.debug('no counters of yields: %s', failure)
            return {}
        found = {}
        for domain, figures in stats:
            counters = parse_yields(figures)
            if counters:
                found[domain.UUIDString()] = counters
        return found

    def _command(
        self,
        uuid: str,
        name: str,
        arguments: Mapping[str, ty.Any],
        timeout_s: float,
    ) -> ty.Any:
        text = json.dumps({'execute': name, 'arguments': arguments})

        def ask(connection: libvirt.virConnect) -> str:
            return ty.cast(
                str,
                libvirt_qemu.qemuAgentCommand(
                    connection.lookupByUUIDString(uuid),
                    text,
                    max(1, math.ceil(timeout_s)),
                    0,
                ),
            )

        answer = self._call(uuid, timeout_s + _MARGIN_S, ask)
        try:
            return answers.returned(answer)
        except answers.MalformedAnswer as problem:
            raise vcpu_channel.ChannelFailed(
                "the guest agent's answer to %s: %s" % (name, problem)
            ) from None

    def _call(
        self,
        key: str,
        timeout_s: float,
        function: Callable[[libvirt.virConnect], T],
    ) -> T:
        calls = self._calls
        if calls is None:
            raise vcpu_channel.GuestAgentUnavailable(
                'the channel to the guests is stopped'
            )
        try:
            return calls.run(
                key, timeout_s, lambda: self._pool.run(timeout_s, function)
            )
        except bounded_calls.CallTimedOut as error:
            raise vcpu_channel.GuestAgentUnavailable(
                'libvirt: %s' % error
            ) from error
        except pool.NoConnection as error:
            raise vcpu_channel.GuestAgentUnavailable(str(error)) from error
        except libvirt.libvirtError as error:
            kind = (
                vcpu_channel.GuestAgentUnavailable
                if error.get_error_code() in _UNAVAILABLE
                else vcpu_channel.ChannelFailed
            )
            raise kind(str(error)) from error
        except vcpu_channel.ChannelFailed:
            raise
        except Exception as error:
            # The binding itself fails on some answers, such as those that are
            # not text.
            LOG.debug('instance %s', key, exc_info=True)
            raise vcpu_channel.ChannelFailed(
                'libvirt: %s: %s'
                % (type(error).__name__, answers.quote(str(error)))
            ) from error


def parse_vcpus(answer: ty.Any) -> vcpu_channel.GuestVcpus:
    """Read the answer to ``guest-get-vcpus``.

    :raises channel.ChannelFailed: when it is none.
    """
    online: set[int] = set()
    offline: set[int] = set()
    fixed: set[int] = set()
    try:
        for one in map(
            answers.mapping, answers.items(answer, answers.MAX_VCPUS)
        ):
            index = answers.integer(
                one.get('logical-id'), 0, answers.MAX_VCPUS - 1
            )
            if index in online or index in offline:
                raise answers.MalformedAnswer('vCPU %d comes twice' % index)
            (online if answers.boolean(one.get('online')) else offline).add(
                index
            )
            if not answers.boolean(one.get('can-offline', False)):
                fixed.add(index)
    except answers.MalformedAnswer as problem:
        raise vcpu_channel.ChannelFailed(
            "the guest agent's answer about its vCPUs: %s" % problem
        ) from None
    return vcpu_channel.GuestVcpus(
        frozenset(online), frozenset(offline), frozenset(fixed)
    )


def _handle(answer: ty.Any) -> int:
    try:
        return answers.integer(answer, 0, 2**63 - 1)
    except answers.MalformedAnswer as problem:
        raise vcpu_channel.ChannelFailed(
            "a file's handle: %s" % problem
        ) from None


def parse_progress(answer: ty.Any) -> int | None:
    """Read the answer to ``guest-file-read``; None when it is no number."""
    try:
        encoded = answers.mapping(answer).get('buf-b64')
        if not isinstance(encoded, str) or len(encoded) > _MOST_ENCODED:
            return None
        text = base64.b64decode(encoded).decode('ascii').strip()
    except ValueError:
        return None
    return (
        int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
    )


def parse_yields(figures: Mapping[str, ty.Any]) -> dict[int, int]:
    """Return attempted yields by vCPU from libvirt's domain statistics."""
    found = {}
    for name, value in figures.items():
        match = _YIELDS.match(name)
        if match:
            found[int(match.group(1))] = int(value)
    return found
