# SPDX-License-Identifier: Apache-2.0

"""Small guests that vsched itself starts: demonstrations and tests."""

from collections.abc import Callable
import pathlib
import threading
import time
import types
import typing as ty

import libvirt
from oslo_log import log as logging

from vsched_agent.hypervisor.libvirt import events
from vsched_agent.profiling.guest import domain_xml

LOG = logging.getLogger(__name__)

#: What the guest's first process writes when it is up.
READY = b'vsched-guest ready'
#: Between two looks at the console's file; QEMU does not report that it grew.
_LOOK_S = 0.05
#: Longest wait for a guest that KVM runs, in seconds.
_KVM_READY_S = 20.0
#: What libvirt raises when it can not start a domain.
NotStarted = libvirt.libvirtError


Started = ty.TypeVar('Started')


class GuestNotReady(Exception):
    """The guest did not get to its ready line."""


class RunningDomain:
    """A transient domain, from its start to its end.

    A context manager: enters when the guest is ready, and ends it on the
    way out, whatever happened.

    :param spec: its definition; with a ``serial_file`` when it shall be
        waited for.
    :param uri: libvirt's URI.
    :param ready_timeout_s: longest wait for the guest, in seconds; 0 does
        not wait.
    :param cancel: when it gets set the wait is given up.
    :param outlive: the domain stays when this process ends without
        stopping it.
    """

    def __init__(
        self,
        spec: domain_xml.DomainSpec,
        uri: str = 'qemu:///system',
        *,
        ready_timeout_s: float = 60.0,
        cancel: threading.Event | None = None,
        outlive: bool = False,
    ) -> None:
        self.spec = spec
        self._uri = uri
        self._ready_timeout_s = ready_timeout_s
        self._cancel = cancel or threading.Event()
        self._flags = 0 if outlive else libvirt.VIR_DOMAIN_START_AUTODESTROY
        self._connection: libvirt.virConnect | None = None
        self._handle: libvirt.virDomain | None = None
        self._entered = False

    @property
    def uuid(self) -> str:
        """The domain's UUID."""
        return self.spec.uuid

    @property
    def handle(self) -> libvirt.virDomain:
        """libvirt's own object, while it runs.

        :raises RuntimeError: before the start and after the end.
        """
        if self._handle is None:
            raise RuntimeError('%s does not run' % self.spec.name)
        return self._handle

    def start(self) -> None:
        """Start the domain and wait for its guest.

        :raises GuestNotReady: when it ended, or the time was up.
        :raises libvirt.libvirtError: when it could not be started.
        """
        if self.spec.serial_file:
            # An earlier guest's ready line is none of this one's.
            pathlib.Path(self.spec.serial_file).unlink(missing_ok=True)
        # A process whose loop was registered but stands still does not answer
        # libvirt's keep-alive; it would be cut off after half a minute, and
        # its domains be destroyed with it.
        events.LOOP.acquire()
        self._entered = True
        try:
            self._connection = libvirt.open(self._uri)
            self._handle = self._connection.createXML(
                domain_xml.build(self.spec), self._flags
            )
            if self._ready_timeout_s > 0 and self.spec.serial_file:
                self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the domain; nothing happens when it has ended already."""
        handle, self._handle = self._handle, None
        connection, self._connection = self._connection, None
        entered, self._entered = self._entered, False
        try:
            if handle is not None:
                try:
                    handle.destroy()
                except libvirt.libvirtError as error:
                    LOG.debug('%s: %s', self.spec.name, error)
            if connection is not None:
                connection.close()
        finally:
            if entered:
                events.LOOP.release()

    def console(self) -> bytes:
        """What the guest has written to its serial console so far."""
        if not self.spec.serial_file:
            return b''
        try:
            return pathlib.Path(self.spec.serial_file).read_bytes()
        except FileNotFoundError:
            return b''

    def __enter__(self) -> ty.Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.stop()

    def _wait_ready(self) -> None:
        limit_s = time.monotonic() + self._ready_timeout_s
        while READY not in self.console():
            if not self.handle.isActive():
                raise GuestNotReady(
                    '%s ended: %s' % (self.spec.name, self._last_words())
                )
            if time.monotonic() > limit_s:
                raise GuestNotReady(
                    '%s is not up after %.0f s, %.1f s of CPU time: %s'
                    % (
                        self.spec.name,
                        self._ready_timeout_s,
                        # Distinguishes a guest that hangs from a starved one.
                        self.handle.info()[4] / 1e9,
                        self._last_words(),
                    )
                )
            if self._cancel.wait(_LOOK_S):
                raise GuestNotReady('%s: cancelled' % self.spec.name)

    def _last_words(self) -> str:
        lines = self.console().decode(errors='replace').splitlines()
        return ' / '.join(lines[-3:]) or 'its console is empty'


def start_by(
    virt_type: str,
    start: Callable[[str, float], Started],
    ready_timeout_s: float,
    notes: list[str],
) -> Started:
    """Start a guest by KVM or emulated; return what ``start`` returns.

    :param virt_type: ``kvm``, ``qemu``, or ``auto``: emulated where KVM does
        not run the guest.
    :param start: takes the type, and the longest wait in seconds.
    :param ready_timeout_s: that wait, except for the attempt of ``auto``
        with KVM.
    :param notes: gets one when KVM does not run the guest.
    :raises GuestNotReady: as ``start`` does; likewise :data:`NotStarted`.
    """
    if virt_type != 'auto':
        return start(virt_type, ready_timeout_s)
    try:
        return start('kvm', _KVM_READY_S)
    except (GuestNotReady, NotStarted) as problem:
        LOG.warning('KVM does not run the guest: %s', problem)
        notes.append('KVM does not run the guest here: it is emulated')
    return start('qemu', ready_timeout_s)
