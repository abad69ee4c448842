# SPDX-License-Identifier: Apache-2.0

"""A private network for calibration VMs: CAP_NET_ADMIN.

A bridge without address, and a pair of cards from it into the network
namespace of one process. pyroute2 sends the requests (rtnetlink(7)); the
helper executes no program.
"""

import atexit
import contextlib
import errno
import os
import re
import socket
import typing as ty

from oslo_privsep import capabilities

from vsched_agent.privileged import context
from vsched_agent.privileged import ownership

links_pctxt = context.Context(
    'links_pctxt',
    __name__,
    'vsched_links_privileged',
    [capabilities.CAP_NET_ADMIN],
)

#: Names contain the owner's process.
NAME = re.compile(r'vsched-[bv]([0-9]{1,7})\Z', re.ASCII)
_BRIDGE, _CARD = 'vsched-b%d', 'vsched-v%d'
#: Name of the card in the peer's namespace.
PEER_NAME = 'eth0'

#: IN6_ADDR_GEN_MODE_NONE of linux/if_link.h: no IPv6 address of its own.
_NO_ADDRESS = {
    'attrs': [('AF_INET6', {'attrs': [('IFLA_INET6_ADDR_GEN_MODE', 1)]})]
}

_made: set[str] = set()


@links_pctxt.entrypoint
def make_network(owner: int, peer: int) -> int:
    """Make a bridge, and a card on it for another network namespace.

    Both are removed with this helper at the latest, which ends with its
    client, also when that is killed.

    :param owner: the process they are named after.
    :param peer: a process whose namespace gets the other end of the card,
        named :data:`PEER_NAME`.
    :returns: 0, or the kernel's errno; nothing is left then.
    :raises PermissionError: for an owner that is not the client, or a peer
        that is not its child.
    """
    _check_owner(owner)
    ownership.check_children([peer])
    bridge, card = _BRIDGE % owner, _CARD % owner
    if not _made:
        atexit.register(_remove_all)
    _made.update((bridge, card))
    try:
        with _requests() as requests:
            requests.link('add', ifname=bridge, kind='bridge')
            requests.link(
                'add',
                ifname=card,
                kind='veth',
                peer={'ifname': PEER_NAME, 'net_ns_pid': peer},
                master=socket.if_nametoindex(bridge),
            )
            for name in (bridge, card):
                requests.link(
                    'set', ifname=name, state='up', IFLA_AF_SPEC=_NO_ADDRESS
                )
    except OSError as failure:
        _remove_both(owner)
        return failure.errno or errno.EIO
    return 0


@links_pctxt.entrypoint
def remove_network(owner: int) -> int:
    """Remove an owner's network, if it still exists.

    :returns: 0, or the kernel's errno.
    :raises PermissionError: for an owner that is not the client.
    """
    _check_owner(owner)
    return _remove_both(owner)


def _check_owner(owner: int) -> None:
    if owner != ownership.client():
        raise PermissionError(
            'a network of process %r is refused: this helper serves process '
            '%d' % (owner, ownership.client())
        )


def _remove_both(owner: int) -> int:
    failed = 0
    for name in (_CARD % owner, _BRIDGE % owner):
        failed = _remove(name) or failed
    return failed


@links_pctxt.entrypoint
def remove_stale_networks() -> list[str]:
    """Remove networks whose owner and its helper were killed.

    :returns: their names.
    """
    removed = []
    for _, name in socket.if_nameindex():
        match = NAME.match(name)
        if match and not os.path.exists('/proc/' + match[1]):
            if _remove(name) == 0:
                removed.append(name)
    return removed


def bridge_of(owner: int) -> str:
    """Return the name of an owner's bridge."""
    return _BRIDGE % owner


def _remove_all() -> None:
    for name in sorted(_made, reverse=True):
        _remove(name)


def _remove(name: str) -> int:
    try:
        with _requests() as requests:
            requests.link('del', ifname=name)
    except OSError as failure:
        if failure.errno != errno.ENODEV:
            return failure.errno or errno.EIO
    _made.discard(name)
    return 0


@contextlib.contextmanager
def _requests() -> ty.Iterator[ty.Any]:
    """Open a socket for requests to the kernel.

    :raises OSError: when the kernel refuses one.
    """
    # Imported by the one process that needs it: it takes 9 MB and 0.1 s, and
    # every helper and the agent import this module.
    import pyroute2

    try:
        # The raw class does not turn requests for tun and tap into ioctls.
        with pyroute2.RawIPRoute() as requests:
            yield requests
    except pyroute2.NetlinkError as failure:
        raise OSError(failure.code, os.strerror(failure.code)) from failure
