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

"""Connections to libvirt, each for one call at a time.

libvirt's client (seen with 9.0) may leave a call unsent, and an answer unread,
while another call of the same connection waits for a guest: of two guests
that are asked at the same time, the quicker one then is as slow as the other.
"""

from collections.abc import Callable
import threading
import typing as ty

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor import libvirt_connection
from vsched_agent.hypervisor import libvirt_events

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')

#: How many calls there are at once. The daemon has twenty threads for calls
#: of all its clients, and Nova is one of them; of one connection it serves
#: five calls at a time.
MOST = 5


class NoConnection(Exception):
    """There is none in time, or it broke while it was in use."""


class ConnectionPool:
    """Connections that are opened when they are needed, and kept.

    :param uri: libvirt's URI.
    :param keepalive_s: a daemon that gives no sign of life for three times
        as long, in seconds, loses its connections.
    """

    def __init__(self, uri: str, keepalive_s: int) -> None:
        self._uri = uri
        self._keepalive_s = keepalive_s
        self._free = threading.BoundedSemaphore(MOST)
        self._lock = threading.Lock()
        self._idle: list[libvirt.virConnect] = []
        self._started = False

    def start(self) -> None:
        """Be ready; nothing is opened yet."""
        libvirt_events.LOOP.acquire()
        self._started = True

    def stop(self) -> None:
        """Close what is not in use; what is will be after its call."""
        with self._lock:
            self._started = False
            idle, self._idle = self._idle, []
        for connection in idle:
            _close(connection)
        libvirt_events.LOOP.release()

    def run(self, timeout_s: float,
            function: Callable[[libvirt.virConnect], T]) -> T:
        """Make a call with a connection that nobody else uses meanwhile.

        :param timeout_s: how long to wait for others to end theirs.
        :raises NoConnection: when there is none in that time, the daemon is
            not there, or it goes during the call.
        :raises libvirt.libvirtError: as the call does.
        """
        if not self._free.acquire(timeout=timeout_s):
            raise NoConnection('libvirt at %s: %d calls wait for an answer' % (
                self._uri, MOST))
        try:
            connection = self._take()
            try:
                return function(connection)
            except libvirt.libvirtError as error:
                if not connection.isAlive():
                    raise self._gone(error) from error
                raise
            finally:
                self._give(connection)
        finally:
            self._free.release()

    def _take(self) -> libvirt.virConnect:
        while True:
            with self._lock:
                if not self._started:
                    raise NoConnection('stopped')
                connection = self._idle.pop() if self._idle else None
            try:
                if connection is None:
                    return libvirt_connection.connect(
                        self._uri, self._keepalive_s, 3)
            except libvirt.libvirtError as error:
                raise self._gone(error) from error
            if connection.isAlive():
                return connection
            _close(connection)

    def _give(self, connection: libvirt.virConnect) -> None:
        alive = connection.isAlive()
        with self._lock:
            kept = self._started and alive
            if kept:
                self._idle.append(connection)
        if not kept:
            _close(connection)

    def _gone(self, error: libvirt.libvirtError) -> NoConnection:
        return NoConnection('libvirt at %s: %s' % (self._uri, error))


def _close(connection: libvirt.virConnect) -> None:
    try:
        connection.close()
    except libvirt.libvirtError as error:
        LOG.debug('closing: %s', error)
