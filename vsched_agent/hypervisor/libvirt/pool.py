# SPDX-License-Identifier: Apache-2.0

"""Connections to libvirt, each for one call at a time.

libvirt's client (seen with 9.0) may leave a call unsent, and an answer unread,
while another call of the same connection waits for a guest: a slow guest then
delays the answer of a fast one.
"""

from collections.abc import Callable
import threading
import typing as ty

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor.libvirt import connection as libvirt_connection
from vsched_agent.hypervisor.libvirt import events

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')

#: Concurrent calls. The daemon has twenty threads for the calls of all its
#: clients, Nova included; of one connection it serves five calls at a time.
MOST = 5


class NoConnection(Exception):
    """No connection is free in time, or it was lost while in use."""


class ConnectionPool:
    """Connections that are opened on demand and reused.

    :param uri: libvirt's URI.
    :param keepalive_s: seconds between keepalive probes; a connection is
        closed after three without an answer.
    """

    def __init__(self, uri: str, keepalive_s: int) -> None:
        self._uri = uri
        self._keepalive_s = keepalive_s
        self._free = threading.BoundedSemaphore(MOST)
        self._lock = threading.Lock()
        self._idle: list[libvirt.virConnect] = []
        self._started = False

    def start(self) -> None:
        """Start; connections are opened on demand."""
        events.LOOP.acquire()
        self._started = True

    def stop(self) -> None:
        """Close idle connections; the others are closed after their calls."""
        with self._lock:
            self._started = False
            idle, self._idle = self._idle, []
        for connection in idle:
            _close(connection)
        events.LOOP.release()

    def run(
        self, timeout_s: float, function: Callable[[libvirt.virConnect], T]
    ) -> T:
        """Make a call with exclusive use of a connection.

        :param timeout_s: longest wait for a free connection.
        :raises NoConnection: when none is free in time, the daemon is
            unavailable, or the connection is lost during the call.
        :raises libvirt.libvirtError: when the call fails.
        """
        if not self._free.acquire(timeout=timeout_s):
            raise NoConnection(
                'libvirt at %s: %d calls wait for an answer'
                % (self._uri, MOST)
            )
        try:
            connection = self._acquire()
            try:
                return function(connection)
            except libvirt.libvirtError as error:
                if not connection.isAlive():
                    raise self._unavailable(error) from error
                raise
            finally:
                self._release(connection)
        finally:
            self._free.release()

    def _acquire(self) -> libvirt.virConnect:
        while True:
            with self._lock:
                if not self._started:
                    raise NoConnection('stopped')
                connection = self._idle.pop() if self._idle else None
            try:
                if connection is None:
                    return libvirt_connection.connect(
                        self._uri, self._keepalive_s, 3
                    )
            except libvirt.libvirtError as error:
                raise self._unavailable(error) from error
            if connection.isAlive():
                return connection
            _close(connection)

    def _release(self, connection: libvirt.virConnect) -> None:
        alive = connection.isAlive()
        with self._lock:
            kept = self._started and alive
            if kept:
                self._idle.append(connection)
        if not kept:
            _close(connection)

    def _unavailable(self, error: libvirt.libvirtError) -> NoConnection:
        return NoConnection('libvirt at %s: %s' % (self._uri, error))


def _close(connection: libvirt.virConnect) -> None:
    try:
        connection.close()
    except libvirt.libvirtError as error:
        LOG.debug('closing: %s', error)
