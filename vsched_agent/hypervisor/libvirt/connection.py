# SPDX-License-Identifier: Apache-2.0

"""A connection to libvirt that reconnects."""

from collections.abc import Callable
import random
import threading
import time
import typing as ty

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor.libvirt import events

LOG = logging.getLogger(__name__)

#: First wait before another attempt, in seconds; doubled each time.
BACKOFF_FIRST_S = 0.5
#: A connection that is lost sooner than this counts as a failed attempt.
STABLE_S = 5.0
#: Seconds of silence before a keepalive probe. libvirt's client (seen with
#: 9.0) may leave a call unsent while an earlier one on the same connection
#: waits for its answer; the next keepalive probe sends it.
SIGN_OF_LIFE_S = 1
#: How long a stop waits for a connection attempt that hangs.
STOP_S = 5.0


class Connection:
    """Keeps one connection open, in a thread of its own.

    :param uri: libvirt's URI.
    :param reconnect_max_s: longest wait between two attempts.
    :param keepalive_s: seconds between keepalive probes; the connection is
        closed after three without an answer.
    :param on_event: called with a domain's UUID.
    :param on_state: called with True when connected and with False when the
        connection is lost.
    """

    def __init__(
        self,
        uri: str,
        reconnect_max_s: float,
        keepalive_s: int,
        on_event: Callable[[str], ty.Any],
        on_state: Callable[[bool], ty.Any],
    ) -> None:
        self._uri = uri
        self._reconnect_max_s = reconnect_max_s
        self._keepalive_s = keepalive_s
        self._on_event = on_event
        self._on_state = on_state
        self._stopping = threading.Event()
        # Set when the thread has work to do.
        self._wake = threading.Event()
        self._current: libvirt.virConnect | None = None
        self._thread = threading.Thread(
            target=self._run, name='vsched-libvirt-connection', daemon=True
        )

    @property
    def current(self) -> libvirt.virConnect | None:
        """The open connection, or None."""
        return self._current

    def start(self) -> None:
        """Start to connect; return at once."""
        events.LOOP.acquire()
        self._thread.start()

    def stop(self) -> None:
        """Close the connection and end the thread."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            LOG.warning(
                'a connection attempt to %s hangs; its thread is abandoned',
                self._uri,
            )
        events.LOOP.release()

    def lost(self, connection: libvirt.virConnect) -> None:
        """Report a dead connection; a new one is opened."""
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
                LOG.log(
                    logging.DEBUG if failures else logging.WARNING,
                    'libvirt at %s is unavailable: %s',
                    self._uri,
                    error,
                )
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
        delay_s = min(
            self._reconnect_max_s, BACKOFF_FIRST_S * 2.0 ** min(failures, 30)
        )
        # Jitter: agents must not all reconnect at the same time.
        return delay_s * random.uniform(0.5, 1.0)

    def _open(self) -> tuple[libvirt.virConnect, list[int]]:
        connection = connect(
            self._uri, SIGN_OF_LIFE_S, 3 * self._keepalive_s // SIGN_OF_LIFE_S
        )
        subscriptions: list[int] = []
        try:
            _if_offered(connection.registerCloseCallback, self._closed, None)
            subscriptions = events.subscribe(connection, self._on_event)
        except libvirt.libvirtError:
            self._close(connection, subscriptions)
            raise
        return connection, subscriptions

    def _hold(self, connection: libvirt.virConnect) -> None:
        self._current = connection
        self._on_state(True)
        # Stop and loss both wake the thread; isAlive() covers a loss while
        # connecting.
        while not self._stopping.is_set() and self._current is not None:
            if not connection.isAlive():
                break
            self._wake.wait()
            self._wake.clear()
        self._current = None
        if not self._stopping.is_set():
            LOG.warning('the connection to libvirt at %s is lost', self._uri)
            self._on_state(False)

    def _closed(
        self, connection: libvirt.virConnect, reason: int, opaque: ty.Any
    ) -> None:
        LOG.debug('libvirt closed the connection, reason %d', reason)
        self._current = None
        self._wake.set()

    @staticmethod
    def _close(
        connection: libvirt.virConnect, subscriptions: list[int]
    ) -> None:
        events.unsubscribe(connection, subscriptions)
        for release in (connection.unregisterCloseCallback, connection.close):
            try:
                release()
            except libvirt.libvirtError as error:
                LOG.debug('closing: %s', error)


def connect(uri: str, silence_s: int, count: int) -> libvirt.virConnect:
    """Open a connection with keepalive probes.

    :param silence_s: seconds of silence before a probe.
    :param count: unanswered probes before the connection is closed.
    :raises libvirt.libvirtError: when it cannot be opened.
    """
    connection = libvirt.open(uri)
    try:
        _if_offered(connection.setKeepAlive, silence_s, count)
    except libvirt.libvirtError:
        connection.close()
        raise
    return connection


def _if_offered(function: Callable[..., ty.Any], *arguments: ty.Any) -> None:
    """Call a function that drivers without a daemon do not support."""
    try:
        function(*arguments)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_SUPPORT:
            raise
