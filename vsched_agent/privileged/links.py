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

"""A private network for calibration VMs: CAP_NET_ADMIN.

A bridge without address, and a pair of cards from it into the network
namespace of one process. Spoken to the kernel directly (rtnetlink(7)), so
that nothing is executed with this helper's power.
"""

import atexit
import errno
import os
import re
import socket
import struct

from oslo_privsep import capabilities

from vsched_agent.privileged import context

links_pctxt = context.Context(
    'links_pctxt', __name__, 'vsched_links_privileged',
    [capabilities.CAP_NET_ADMIN])

#: What is made is named after its owner's process.
NAME = re.compile(r'vsched-[bv]([0-9]{1,7})\Z', re.ASCII)
_BRIDGE, _CARD = 'vsched-b%d', 'vsched-v%d'
#: What the peer calls its end.
PEER_NAME = 'eth0'

_NEWLINK, _DELLINK = 16, 17
_REQUEST, _ACK, _EXCL, _CREATE = 0x1, 0x4, 0x200, 0x400
_ERROR = 2
_UP = 1
_IFNAME, _MASTER, _LINKINFO, _NS_PID, _AF_SPEC = 3, 10, 18, 19, 26
_KIND, _DATA, _VETH_PEER = 1, 2, 1
_GEN_MODE, _GEN_NONE = 8, 1

_HEADER = struct.Struct('=IHHII')
_LINK = struct.Struct('=BxHiII')
_ATTRIBUTE = struct.Struct('=HH')

_made: set[str] = set()


@links_pctxt.entrypoint
def make_network(owner: int, peer: int) -> int:
    """Make a bridge, and a card on it for another network namespace.

    Both end with this helper at the latest, which ends with whoever it
    helps, however that dies.

    :param owner: the process they are named after.
    :param peer: a process whose namespace gets the other end of the card,
        named :data:`PEER_NAME`.
    :returns: 0, or the kernel's errno; there is nothing left of it then.
    """
    bridge, card = _BRIDGE % owner, _CARD % owner
    if not _made:
        atexit.register(_remove_all)
    _made.update((bridge, card))
    try:
        _talk(_NEWLINK, _EXCL | _CREATE, _link(
            bridge, _attribute(_LINKINFO, _attribute(_KIND, b'bridge'))))
        other = _attribute(_VETH_PEER, _link(
            PEER_NAME, _attribute(_NS_PID, struct.pack('=I', peer))))
        _talk(_NEWLINK, _EXCL | _CREATE, _link(
            card, _attribute(_LINKINFO, _attribute(_KIND, b'veth') +
                             _attribute(_DATA, other)) + _attribute(
                _MASTER, struct.pack('=I', socket.if_nametoindex(bridge)))))
        for name in (bridge, card):
            _up(name)
    except OSError as failure:
        remove_network(owner)
        return failure.errno or errno.EIO
    return 0


@links_pctxt.entrypoint
def remove_network(owner: int) -> int:
    """Remove what was made for an owner; it may be gone already.

    :returns: 0, or the kernel's errno.
    """
    failed = 0
    for name in (_CARD % owner, _BRIDGE % owner):
        failed = _remove(name) or failed
    return failed


@links_pctxt.entrypoint
def remove_stale_networks() -> list[str]:
    """Remove networks whose owner is gone: it and its helper were killed.

    :returns: what was removed.
    """
    removed = []
    for _, name in socket.if_nameindex():
        match = NAME.match(name)
        if match and not os.path.exists('/proc/' + match[1]):
            if _remove(name) == 0:
                removed.append(name)
    return removed


def bridge_of(owner: int) -> str:
    """What the bridge of an owner is called."""
    return _BRIDGE % owner


def _remove_all() -> None:
    for name in sorted(_made, reverse=True):
        _remove(name)


def _remove(name: str) -> int:
    try:
        _talk(_DELLINK, 0, _link(name))
    except OSError as failure:
        if failure.errno != errno.ENODEV:
            return failure.errno or errno.EIO
    _made.discard(name)
    return 0


def _up(name: str) -> None:
    _talk(_NEWLINK, 0, _link(name, b'', _UP))


def _link(name: str, attributes: bytes = b'', flags: int = 0) -> bytes:
    # No address makes itself up: nobody speaks IPv6 there.
    quiet = _attribute(_AF_SPEC, _attribute(
        socket.AF_INET6, _attribute(_GEN_MODE, bytes([_GEN_NONE]))))
    return (_LINK.pack(socket.AF_UNSPEC, 0, 0, flags, flags) +
            _attribute(_IFNAME, name.encode() + b'\0') + attributes +
            (quiet if flags & _UP else b''))


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + bytes(-size % 4)


def _talk(kind: int, flags: int, body: bytes) -> None:
    """Ask the kernel for one change.

    :raises OSError: when it says no.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                       socket.NETLINK_ROUTE) as channel:
        channel.settimeout(10)
        channel.sendto(_HEADER.pack(
            _HEADER.size + len(body), kind, _REQUEST | _ACK | flags, 1, 0) +
            body, (0, 0))
        answer = channel.recv(65536)
    _, said, *_ = _HEADER.unpack_from(answer)
    number, = struct.unpack_from('=i', answer, _HEADER.size)
    if said != _ERROR or number:
        raise OSError(-number, os.strerror(-number))
