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

"""libvirt's event loop and the events that the driver follows."""

from collections.abc import Callable
import threading
import typing as ty

import libvirt
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class EventLoop:
    """The thread that serves libvirt's sockets and calls back.

    libvirt has one event loop per process. It has to be registered before
    the first connection is opened, and everybody who needs it shares it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registered = False
        self._users = 0
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def acquire(self) -> None:
        """Have the loop run until :meth:`release`."""
        with self._lock:
            if not self._registered:
                libvirt.virEventRegisterDefaultImpl()
                # libvirt would print what its exceptions say as well.
                libvirt.registerErrorHandler(_heard_already, None)
                self._registered = True
            self._users += 1
            if self._thread is None:
                self._ending = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._ending,), daemon=True,
                    name='vsched-libvirt-events')
                self._thread.start()

    def release(self) -> None:
        """Stop the loop when nobody else needs it."""
        with self._lock:
            self._users -= 1
            if self._users or self._thread is None:
                return
            self._ending.set()
            # A timer interrupts the poll; a flag alone would be seen at
            # the next event, if ever.
            timer = libvirt.virEventAddTimeout(0, _tick, None)
            if self._thread is not threading.current_thread():
                self._thread.join()
            libvirt.virEventRemoveTimeout(timer)
            self._thread = None

    def _run(self, ending: threading.Event) -> None:
        while not ending.is_set():
            if libvirt.virEventRunDefaultImpl() < 0:
                LOG.error('libvirt\'s event loop failed; it goes on')
                ending.wait(1)


def _tick(timer: int, opaque: ty.Any) -> None:
    """Only there to end a poll."""


def _heard_already(context: ty.Any, error: ty.Any) -> None:
    LOG.debug('libvirt: %s', error[2])


#: The one of this process.
LOOP = EventLoop()

# What was only written down and does not concern the running domain.
_OFF_LINE = frozenset((
    libvirt.VIR_DOMAIN_EVENT_DEFINED, libvirt.VIR_DOMAIN_EVENT_UNDEFINED))


def subscribe(connection: libvirt.virConnect,
              changed: Callable[[str], ty.Any]) -> list[int]:
    """Follow everything that may change what the driver says of a domain.

    :param connection: an open connection.
    :param changed: called from the event loop with a domain's UUID.
    :returns: what :func:`unsubscribe` takes.
    """

    def lifecycle(connection: ty.Any, domain: libvirt.virDomain, event: int,
                  detail: int, opaque: ty.Any) -> None:
        if event not in _OFF_LINE:
            LOG.debug('%s: lifecycle event %d, %d', domain.name(), event,
                      detail)
            changed(domain.UUIDString())

    def tunable(connection: ty.Any, domain: libvirt.virDomain,
                params: dict[str, ty.Any], opaque: ty.Any) -> None:
        if any(name.startswith('cputune.') for name in params):
            changed(domain.UUIDString())

    def anything(connection: ty.Any, domain: libvirt.virDomain,
                 *others: ty.Any) -> None:
        changed(domain.UUIDString())

    handlers: dict[str, Callable[..., None]] = {
        'VIR_DOMAIN_EVENT_ID_LIFECYCLE': lifecycle,
        'VIR_DOMAIN_EVENT_ID_REBOOT': anything,
        'VIR_DOMAIN_EVENT_ID_TUNABLE': tunable,
        'VIR_DOMAIN_EVENT_ID_METADATA_CHANGE': anything,
        # A vCPU that is plugged in or out is a device.
        'VIR_DOMAIN_EVENT_ID_DEVICE_ADDED': anything,
        'VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED': anything,
        # libvirt 12 has one of its own for a vCPU that left.
        'VIR_DOMAIN_EVENT_ID_VCPU_REMOVED': anything,
    }
    subscriptions = []
    for name, handler in handlers.items():
        number = getattr(libvirt, name, None)
        if number is None:
            continue
        try:
            subscriptions.append(connection.domainEventRegisterAny(
                None, number, handler, None))
        except libvirt.libvirtError as error:
            # Older daemons know fewer events; the regular full look finds
            # what is not told. Without lifecycle events nothing works.
            if number == libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE:
                raise
            LOG.warning('libvirt does not offer %s: %s', name, error)
    return subscriptions


def unsubscribe(connection: libvirt.virConnect,
                subscriptions: list[int]) -> None:
    """Let go of what :func:`subscribe` made.

    A handler that stays holds on to the connection for ever.
    """
    for number in subscriptions:
        try:
            connection.domainEventDeregisterAny(number)
        except libvirt.libvirtError as error:
            LOG.debug('event %d: %s', number, error)
