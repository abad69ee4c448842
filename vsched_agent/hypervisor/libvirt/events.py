# SPDX-License-Identifier: Apache-2.0

"""libvirt's event loop and the events that the driver follows."""

from collections.abc import Callable
import threading
import typing as ty

import libvirt
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class EventLoop:
    """The thread that runs libvirt's event loop.

    libvirt has one event loop per process, shared by all connections. It has
    to be registered before the first connection is opened.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registered = False
        self._users = 0
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def acquire(self) -> None:
        """Run the loop until :meth:`release`."""
        with self._lock:
            if not self._registered:
                libvirt.virEventRegisterDefaultImpl()
                # libvirt would print errors that it also raises.
                libvirt.registerErrorHandler(_log_error, None)
                self._registered = True
            self._users += 1
            if self._thread is None:
                self._ending = threading.Event()
                self._thread = threading.Thread(
                    target=self._run,
                    args=(self._ending,),
                    daemon=True,
                    name='vsched-libvirt-events',
                )
                self._thread.start()

    def release(self) -> None:
        """Stop the loop when it has no other users."""
        with self._lock:
            self._users -= 1
            if self._users or self._thread is None:
                return
            self._ending.set()
            # A timer interrupts the poll; a flag alone would be read only
            # after the next event.
            timer = libvirt.virEventAddTimeout(0, _tick, None)
            if self._thread is not threading.current_thread():
                self._thread.join()
            libvirt.virEventRemoveTimeout(timer)
            self._thread = None

    def _run(self, ending: threading.Event) -> None:
        while not ending.is_set():
            if libvirt.virEventRunDefaultImpl() < 0:
                LOG.error("libvirt's event loop failed; it continues")
                ending.wait(1)


def _tick(timer: int, opaque: ty.Any) -> None:
    """End a poll."""


def _log_error(context: ty.Any, error: ty.Any) -> None:
    LOG.debug('libvirt: %s', error[2])


#: The one of this process.
LOOP = EventLoop()

# Changes of the stored definition, not of the running domain.
_OFF_LINE = frozenset(
    (libvirt.VIR_DOMAIN_EVENT_DEFINED, libvirt.VIR_DOMAIN_EVENT_UNDEFINED)
)


def subscribe(
    connection: libvirt.virConnect, changed: Callable[[str], ty.Any]
) -> list[int]:
    """Subscribe to all events that may change a domain's properties.

    :param connection: an open connection.
    :param changed: called from the event loop with a domain's UUID.
    :returns: subscriptions, for :func:`unsubscribe`.
    """

    def lifecycle(
        connection: ty.Any,
        domain: libvirt.virDomain,
        event: int,
        detail: int,
        opaque: ty.Any,
    ) -> None:
        if event not in _OFF_LINE:
            LOG.debug(
                '%s: lifecycle event %d, %d', domain.name(), event, detail
            )
            changed(domain.UUIDString())

    def tunable(
        connection: ty.Any,
        domain: libvirt.virDomain,
        params: dict[str, ty.Any],
        opaque: ty.Any,
    ) -> None:
        if any(name.startswith('cputune.') for name in params):
            changed(domain.UUIDString())

    def anything(
        connection: ty.Any, domain: libvirt.virDomain, *others: ty.Any
    ) -> None:
        changed(domain.UUIDString())

    handlers: dict[str, Callable[..., None]] = {
        'VIR_DOMAIN_EVENT_ID_LIFECYCLE': lifecycle,
        'VIR_DOMAIN_EVENT_ID_REBOOT': anything,
        'VIR_DOMAIN_EVENT_ID_TUNABLE': tunable,
        'VIR_DOMAIN_EVENT_ID_METADATA_CHANGE': anything,
        # A vCPU that is plugged in or out is a device.
        'VIR_DOMAIN_EVENT_ID_DEVICE_ADDED': anything,
        'VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED': anything,
        # libvirt 12 has a separate one for an unplugged vCPU.
        'VIR_DOMAIN_EVENT_ID_VCPU_REMOVED': anything,
    }
    subscriptions = []
    for name, handler in handlers.items():
        number = getattr(libvirt, name, None)
        if number is None:
            continue
        try:
            subscriptions.append(
                connection.domainEventRegisterAny(None, number, handler, None)
            )
        except libvirt.libvirtError as error:
            # Older daemons support fewer events; the periodic full scan
            # detects those changes. Lifecycle events are required.
            if number == libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE:
                raise
            LOG.warning('libvirt does not offer %s: %s', name, error)
    return subscriptions


def unsubscribe(
    connection: libvirt.virConnect, subscriptions: list[int]
) -> None:
    """Cancel subscriptions of :func:`subscribe`.

    A remaining handler would keep the connection open forever.
    """
    for number in subscriptions:
        try:
            connection.domainEventDeregisterAny(number)
        except libvirt.libvirtError as error:
            LOG.debug('event %d: %s', number, error)
