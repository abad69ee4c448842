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

"""A connection to libvirt that comes back by itself."""

from collections.abc import Callable
import random
import threading
import time
import typing as ty

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor import libvirt_events

LOG = logging.getLogger(__name__)

#: First wait before another attempt, in seconds; doubled each time.
BACKOFF_FIRST_S = 0.5
#: A connection that is lost sooner than this counts as a failed attempt.
STABLE_S = 5.0
#: Silence, in seconds, after which the daemon is asked for a sign of life.
#: libvirt's client (seen with 9.0) may leave a call unsent while an earlier
#: one on the same connection waits for its answer; the next sign of life ends
#: that.
SIGN_OF_LIFE_S = 1
#: How long a stop waits for an attempt that hangs in the daemon.
STOP_S = 5.0


class Connection:
    """Keeps one connection open, from a thread of its own.

    :param uri: libvirt's URI.
    :param reconnect_max_s: longest wait between two attempts.
    :param keepalive_s: a daemon that gives no sign of life for three times
        as long, in seconds, loses the connection.
    :param on_event: called with a domain's UUID.
    :param on_state: called with True when the connection stands and with
        False when it is lost.
    """

    def __init__(self, uri: str, reconnect_max_s: float, keepalive_s: int,
                 on_event: Callable[[str], ty.Any],
                 on_state: Callable[[bool], ty.Any]) -> None:
        self._uri = uri
        self._reconnect_max_s = reconnect_max_s
        self._keepalive_s = keepalive_s
        self._on_event = on_event
        self._on_state = on_state
        self._stopping = threading.Event()
        # Set when there is something for the thread to do.
        self._wake = threading.Event()
        self._current: libvirt.virConnect | None = None
        self._thread = threading.Thread(
            target=self._run, name='vsched-libvirt-connection', daemon=True)

    @property
    def current(self) -> libvirt.virConnect | None:
        """The connection that stands, or None."""
        return self._current

    def start(self) -> None:
        """Begin to connect; returns at once."""
        libvirt_events.LOOP.acquire()
        self._thread.start()

    def stop(self) -> None:
        """Close the connection and end the thread."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            LOG.warning('a connection attempt to %s hangs; it is left '
                        'behind', self._uri)
        libvirt_events.LOOP.release()

    def lost(self, connection: libvirt.virConnect) -> None:
        """Somebody found this connection dead; a new one is wanted."""
        if connection is self._current:
            self._current = None
            self._wake.set()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                connection, subscriptions = self._open()
            except libvirt.libvirtError as error:
                LOG.log(logging.DEBUG if failures else logging.WARNING,
                        'libvirt at %s is not there: %s', self._uri, error)
            else:
                LOG.info('connected to libvirt at %s', self._uri)
                since_s = time.monotonic()
                self._hold(connection)
                self._close(connection, subscriptions)
                if time.monotonic() - since_s >= STABLE_S:
                    failures = 0
                    continue
            self._stopping.wait(self._backoff_s(failures))
            failures += 1

    def _backoff_s(self, failures: int) -> float:
        delay_s = min(self._reconnect_max_s,
                      BACKOFF_FIRST_S * 2 ** min(failures, 30))
        # Jitter: the agents of a rack must not come back as one.
        return delay_s * random.uniform(0.5, 1.0)

    def _open(self) -> tuple[libvirt.virConnect, list[int]]:
        connection = connect(self._uri, SIGN_OF_LIFE_S,
                             3 * self._keepalive_s // SIGN_OF_LIFE_S)
        subscriptions: list[int] = []
        try:
            _if_offered(connection.registerCloseCallback, self._closed, None)
            subscriptions = libvirt_events.subscribe(
                connection, self._on_event)
        except libvirt.libvirtError:
            self._close(connection, subscriptions)
            raise
        return connection, subscriptions

    def _hold(self, connection: libvirt.virConnect) -> None:
        self._current = connection
        self._on_state(True)
        # Stop and loss both wake; a wake that came while connecting is
        # settled by looking.
        while not self._stopping.is_set() and self._current is not None:
            if not connection.isAlive():
                break
            self._wake.wait()
            self._wake.clear()
        self._current = None
        if not self._stopping.is_set():
            LOG.warning('the connection to libvirt at %s is lost', self._uri)
            self._on_state(False)

    def _closed(self, connection: libvirt.virConnect, reason: int,
                opaque: ty.Any) -> None:
        LOG.debug('libvirt closed the connection, reason %d', reason)
        self._current = None
        self._wake.set()

    @staticmethod
    def _close(connection: libvirt.virConnect,
               subscriptions: list[int]) -> None:
        libvirt_events.unsubscribe(connection, subscriptions)
        for release in (connection.unregisterCloseCallback,
                        connection.close):
            try:
                release()
            except libvirt.libvirtError as error:
                LOG.debug('closing: %s', error)


def connect(uri: str, silence_s: int, count: int) -> libvirt.virConnect:
    """Open a connection that notices when the daemon hangs.

    :param silence_s: after how much silence the daemon is asked for a sign
        of life, in seconds.
    :param count: how often in a row before it counts as gone.
    :raises libvirt.libvirtError: when it can not be opened.
    """
    connection = libvirt.open(uri)
    try:
        _if_offered(connection.setKeepAlive, silence_s, count)
    except libvirt.libvirtError:
        connection.close()
        raise
    return connection


def _if_offered(function: Callable[..., ty.Any],
                *arguments: ty.Any) -> None:
    """Ask for what a driver without a daemon does not have or need."""
    try:
        function(*arguments)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_SUPPORT:
            raise
