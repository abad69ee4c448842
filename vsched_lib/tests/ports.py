# SPDX-License-Identifier: Apache-2.0

"""Ports of this machine for services that listen later, or again."""

import socket

#: What keeps the ports that were reserved.
_reserved: list[socket.socket] = []


def reserve() -> int:
    """Return a TCP port of 127.0.0.1 that this process keeps until it ends.

    Nothing listens there, so that connections are refused, and the kernel
    gives it to nobody who asks for any port: tests in other processes do so
    all the time. A service that is told this port can listen there if it
    sets SO_REUSEADDR, as servers do, to be able to start again.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(('127.0.0.1', 0))
    _reserved.append(kept)
    port: int = kept.getsockname()[1]
    return port
