# SPDX-License-Identifier: Apache-2.0

"""What the drivers of all hypervisors of libvirt have in common.

A domain's properties are cached until an event, or a watch, indicates a
change: a scan of all domains then costs one call to the daemon.
"""

import abc
from collections.abc import Sequence
import itertools
import threading
import typing as ty
import uuid as uuids

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import calls as libvirt_calls
from vsched_agent.hypervisor.libvirt import connection as libvirt_connection
from vsched_agent.hypervisor import watch

LOG = logging.getLogger(__name__)


class Known(ty.Protocol):
    """The cached properties of one domain."""

    @property
    def stamp(self) -> int:
        """Return the number of the newest change that they include."""

    @property
    def domain_id(self) -> int:
        """Return libvirt's number of the running domain."""

    @property
    def domain(self) -> base.Domain:
        """Return the domain."""


K = ty.TypeVar('K', bound=Known)
#: State of one scan of one or all domains.
S = ty.TypeVar('S')


class CachedDriver(base.Hypervisor, ty.Generic[K, S]):
    """A connection to libvirt, and what is known of its domains.

    :param uri: libvirt's URI.
    :param reconnect_max_s: longest wait between two attempts to connect.
    :param keepalive_s: see :class:`libvirt_connection.Connection`.
    :param call_timeout_s: longest wait for an answer of the daemon.
    """

    #: The least number of a running domain that is an instance.
    least_id = 0

    def __init__(
        self,
        uri: str,
        reconnect_max_s: float,
        keepalive_s: int,
        call_timeout_s: float,
    ) -> None:
        self._uri = uri
        self._reconnect_max_s = reconnect_max_s
        self._keepalive_s = keepalive_s
        self._call_timeout_s = call_timeout_s
        self._lock = threading.Lock()
        self._known: dict[str, K] = {}
        # Changes are numbered so that none during a scan is lost. Domains
        # without an event have the epoch's number.
        self._stamps = itertools.count(1)
        self._changed: dict[str, int] = {}
        self._epoch = 0
        self._on_change: base.ChangeCallback | None = None
        self._connection: libvirt_connection.Connection | None = None
        self._calls: libvirt_calls.LibvirtCalls | None = None
        self._watch: watch.Watch | None = None

    # Of one kind of hypervisor

    @abc.abstractmethod
    def _make_watch(self) -> watch.Watch:
        """Return what detects changes without an event."""

    @abc.abstractmethod
    def _scan(self, connection: libvirt.virConnect) -> S:
        """Return the state of a new scan."""

    @abc.abstractmethod
    def _inspect(
        self,
        connection: libvirt.virConnect,
        uuid: str,
        domain: libvirt.virDomain,
        scan: S,
        stamp: int,
    ) -> K | None:
        """Return a domain's properties; None when it does not run."""

    def _is_alive(self, known: K) -> bool:
        """Return whether what is known can still be used."""
        return True

    def _refreshed(self, uuid: str, known: K) -> K | None:
        """Return a cached domain without a call; None to inspect it."""
        return known

    # The interface

    def start(self, on_change: base.ChangeCallback) -> None:
        if self._connection is not None:
            raise RuntimeError('started already')
        self._on_change = on_change
        self._calls = libvirt_calls.LibvirtCalls(
            self._uri, self._call_timeout_s, self._lost
        )
        self._connection = libvirt_connection.Connection(
            self._uri,
            self._reconnect_max_s,
            self._keepalive_s,
            self._event,
            self._state,
        )
        self._watch = self._make_watch()
        self._connection.start()
        self._watch.start()

    def stop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._on_change = None
        if self._watch is not None:
            self._watch.stop()
        connection.stop()
        if self._calls is not None:
            self._calls.close()
        self._forget_all()

    @property
    def connected(self) -> bool:
        connection = self._connection
        return connection is not None and connection.current is not None

    def domains(self) -> Sequence[base.Domain]:
        connection = self._current()
        running = self._running(connection)
        self._forget_others({uuid for uuid, _ in running})
        if not running:
            return []
        scan = self._scan(connection)
        found = (
            self._cached_or_inspected(connection, uuid, domain, scan)
            for uuid, domain in running
        )
        return [one for one in found if one is not None]

    def domain(self, uuid: str) -> base.Domain | None:
        connection = self._current()
        try:
            uuid = str(uuids.UUID(uuid))
        except ValueError:
            return None
        found = self._started().run_domain(
            uuid, connection, lambda: connection.lookupByUUIDString(uuid)
        )
        if found is None or found.ID() < self.least_id:
            with self._lock:
                self._known.pop(uuid, None)
            return None
        return self._cached_or_inspected(
            connection, uuid, found, self._scan(connection)
        )

    # Callbacks of the connection

    def _event(self, uuid: str) -> None:
        with self._lock:
            self._changed[uuid] = next(self._stamps)
        self._notify(uuid)

    def _state(self, connected: bool) -> None:
        # Events may have been missed.
        self._forget_all()
        self._notify(None)

    def _notify(self, uuid: str | None) -> None:
        on_change = self._on_change
        if on_change is None:
            return
        try:
            on_change(uuid)
        except Exception:
            # A failing callback must not end the event loop.
            LOG.exception('the callback for a change of %s failed', uuid)

    # The cache

    def _forget_all(self) -> None:
        with self._lock:
            self._known.clear()
            self._changed.clear()
            self._epoch = next(self._stamps)

    def _forget_others(self, running: set[str]) -> None:
        with self._lock:
            for uuid in self._known.keys() - running:
                del self._known[uuid]
            for uuid in self._changed.keys() - running:
                del self._changed[uuid]

    def _is_current(self, uuid: str, known: K) -> bool:
        """Return whether no change came since; the lock is held."""
        return known.stamp == self._changed.get(uuid, self._epoch)

    def _cached_or_inspected(
        self,
        connection: libvirt.virConnect,
        uuid: str,
        domain: libvirt.virDomain,
        scan: S,
    ) -> base.Domain | None:
        with self._lock:
            last = self._known.get(uuid)
            stamp = self._changed.get(uuid, self._epoch)
        if last is not None:
            if last.domain_id != domain.ID() or not self._is_alive(last):
                last = None
            elif last.stamp == stamp:
                known = self._refreshed(uuid, last)
                if known is not None:
                    return known.domain
        try:
            seen = self._inspect(connection, uuid, domain, scan, stamp)
        except base.HypervisorUnavailable as error:
            if not self.connected:
                raise
            # A domain that hangs must not hide itself or others.
            LOG.warning(
                '%s does not answer (%s); %s',
                domain.name(),
                error,
                'its cached state is used' if last else 'it is left out',
            )
            return last.domain if last else None
        with self._lock:
            if seen is None:
                self._known.pop(uuid, None)
            else:
                self._known[uuid] = seen
        return None if seen is None else seen.domain

    # Calls to the daemon

    def _running(
        self, connection: libvirt.virConnect
    ) -> list[tuple[str, libvirt.virDomain]]:
        return [
            (uuid, domain)
            for uuid, domain in self._started().run(
                'list',
                connection,
                lambda: [
                    (one.UUIDString(), one)
                    for one in connection.listAllDomains(
                        libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
                    )
                ],
            )
            # A domain that has just ended has -1 and is still inspected.
            if not 0 <= domain.ID() < self.least_id
        ]

    def _current(self) -> libvirt.virConnect:
        connection = self._connection
        current = connection.current if connection is not None else None
        if current is None:
            raise base.HypervisorUnavailable(
                'no connection to libvirt at %s' % self._uri
            )
        return current

    def _lost(self, connection: libvirt.virConnect) -> None:
        holder = self._connection
        if holder is not None:
            holder.lost(connection)

    def _started(self) -> libvirt_calls.LibvirtCalls:
        calls = self._calls
        if calls is None:
            raise base.HypervisorUnavailable('not started')
        return calls
