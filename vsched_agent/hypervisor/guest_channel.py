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

"""The channel through QEMU's guest agent, by way of libvirt.

It has connections of its own, one for each call: what waits for a guest must
keep neither the driver's calls nor those to other guests waiting.
Each command has a time limit that libvirt keeps, so a guest that hangs does
not stay locked for others (Nova asks the same agent).
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

from vsched_agent.hypervisor import bounded_calls
from vsched_agent.hypervisor import channel
from vsched_agent.hypervisor import connection_pool
from vsched_agent.hypervisor import hotplug_channel

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')

#: What libvirt may take for itself on top of the guest's time: it gives the
#: guest five seconds to come into step first.
_MARGIN_S = 6.0
#: A progress counter is a number, and no number is longer.
_MOST_DIGITS = 20
_STATS_S = 5.0
_YIELDS = re.compile(r'vcpu\.([0-9]+)\.directed_yield_attempted\.sum\Z')

_MUTE = (libvirt.VIR_ERR_AGENT_UNRESPONSIVE, libvirt.VIR_ERR_AGENT_UNSYNCED,
         libvirt.VIR_ERR_ARGUMENT_UNSUPPORTED, libvirt.VIR_ERR_NO_DOMAIN,
         libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_OPERATION_TIMEOUT)


class GuestAgentChannel(channel.VcpuChannel):
    """vCPUs are taken offline and online by the guest itself.

    :param uri: libvirt's URI.
    :param keepalive_s: see :class:`connection_pool.ConnectionPool`.
    """

    def __init__(self, uri: str = 'qemu:///system',
                 keepalive_s: int = 5) -> None:
        self._pool = connection_pool.ConnectionPool(uri, keepalive_s)
        self._calls: bounded_calls.BoundedCalls | None = None
        self.unplugging = hotplug_channel.HotplugChannel(self._call)

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

    def ask(self, uuid: str, timeout_s: float) -> channel.GuestVcpus:
        return parse_vcpus(self._command(
            uuid, 'guest-get-vcpus', {}, timeout_s))

    def tell(self, uuid: str, online: Mapping[int, bool],
             timeout_s: float) -> None:
        if online:
            # It may do the first few only; whoever asks afterwards sees.
            self._command(uuid, 'guest-set-vcpus', {'vcpus': [
                {'logical-id': index, 'online': wanted}
                for index, wanted in online.items()]}, timeout_s)

    def progress(self, uuid: str, path: str,
                 timeout_s: float) -> int | None:
        try:
            handle = self._command(uuid, 'guest-file-open', {
                'path': path, 'mode': 'r'}, timeout_s)
            try:
                found = self._command(uuid, 'guest-file-read', {
                    'handle': handle, 'count': _MOST_DIGITS + 1}, timeout_s)
            finally:
                self._command(uuid, 'guest-file-close', {
                    'handle': handle}, timeout_s)
        except channel.GuestMute:
            raise
        except channel.ChannelFailed as failure:
            # No file, or an agent that may not read any.
            LOG.debug('instance %s tells no progress: %s', uuid, failure)
            return None
        return parse_progress(found)

    def yields(self, uuids: Collection[str],
               ) -> Mapping[str, Mapping[int, int]]:
        def look(connection: libvirt.virConnect) -> list[ty.Any]:
            known = {one.UUIDString(): one for one in
                     connection.listAllDomains(
                         libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)}
            asked = [known[uuid] for uuid in uuids if uuid in known]
            # Counters are no reason to wait for anyone.
            return connection.domainListGetStats(
                asked, libvirt.VIR_DOMAIN_STATS_VCPU,
                libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT,
            ) if asked else []

        try:
            stats = self._call('yields', _STATS_S, look)
        except channel.ChannelFailed as failure:
            LOG.debug('no counters of yields: %s', failure)
            return {}
        found = {}
        for domain, figures in stats:
            counters = parse_yields(figures)
            if counters:
                found[domain.UUIDString()] = counters
        return found

    def _command(self, uuid: str, name: str, arguments: Mapping[str, ty.Any],
                 timeout_s: float) -> ty.Any:
        text = json.dumps({'execute': name, 'arguments': arguments})

        def ask(connection: libvirt.virConnect) -> str:
            return ty.cast(str, libvirt_qemu.qemuAgentCommand(
                connection.lookupByUUIDString(uuid), text,
                max(1, math.ceil(timeout_s)), 0))

        answer = self._call(uuid, timeout_s + _MARGIN_S, ask)
        try:
            return json.loads(answer)['return']
        except (ValueError, KeyError, TypeError):
            raise channel.ChannelFailed('the guest agent answers %s to %s' % (
                ascii(answer)[:200], name)) from None

    def _call(self, key: str, timeout_s: float,
              function: Callable[[libvirt.virConnect], T]) -> T:
        calls = self._calls
        if calls is None:
            raise channel.GuestMute('the channel to the guests is stopped')
        try:
            return calls.run(key, timeout_s,
                             lambda: self._pool.run(timeout_s, function))
        except bounded_calls.CallTimedOut as error:
            raise channel.GuestMute('libvirt: %s' % error) from error
        except connection_pool.NoConnection as error:
            raise channel.GuestMute(str(error)) from error
        except libvirt.libvirtError as error:
            kind = (channel.GuestMute if error.get_error_code() in _MUTE
                    else channel.ChannelFailed)
            raise kind(str(error)) from error


def parse_vcpus(answer: ty.Any) -> channel.GuestVcpus:
    """Read the answer to ``guest-get-vcpus``.

    :raises channel.ChannelFailed: when it is none.
    """
    try:
        online: set[int] = set()
        offline: set[int] = set()
        fixed: set[int] = set()
        for one in answer:
            index = int(one['logical-id'])
            (online if one['online'] is True else offline).add(index)
            if not one.get('can-offline', False):
                fixed.add(index)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise channel.ChannelFailed('the guest agent says %s: %s' % (
            ascii(answer)[:200], type(error).__name__)) from None
    return channel.GuestVcpus(
        frozenset(online), frozenset(offline), frozenset(fixed))


def parse_progress(answer: ty.Any) -> int | None:
    """Read the answer to ``guest-file-read``; None when it is no number."""
    try:
        text = base64.b64decode(answer['buf-b64']).decode('ascii').strip()
    except (ValueError, KeyError, TypeError):
        return None
    return int(text) if text.isdecimal() and len(
        text) <= _MOST_DIGITS else None


def parse_yields(figures: Mapping[str, ty.Any]) -> dict[int, int]:
    """By vCPU, the attempts to yield among libvirt's figures of a domain."""
    found = {}
    for name, value in figures.items():
        match = _YIELDS.match(name)
        if match:
            found[int(match.group(1))] = int(value)
    return found
