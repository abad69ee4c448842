# SPDX-License-Identifier: Apache-2.0

"""What functional tests stand on."""

from collections.abc import Callable
from collections.abc import Sequence
import contextlib
import logging
import os
import pathlib
import socket
import threading
import time
import typing as ty
import uuid as uuids

import fixtures
import libvirt

from vsched_agent.enforcement import deadline
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm
from vsched_lib.tests import requirements

LOG = logging.getLogger(__name__)

#: libvirt's URI and the socket that it stands for.
URI = os.environ.get('VSCHED_TEST_LIBVIRT_URI', 'qemu:///system')
SOCKET = '/run/libvirt/libvirt-sock'
#: Only a guest that hangs takes as long: tests beside it compute as well.
BOOT_S = 120.0
#: How often a guest is started. Seldom all emulated CPUs spin before the
#: kernel prints anything, for minutes of CPU time, where a boot takes seconds.
#: The cause is not known, and says nothing of what is tested.
_BOOTS = 2
#: How long what a killed run leaves may take to be gone.
_GONE_S = 60.0
#: Where tools/guest/build.sh puts the guest.
GUEST_DIR = pathlib.Path(
    os.environ.get('VSCHED_GUEST_DIR', '/var/cache/vsched/guest')
)


def require_libvirt(test: ty.Any) -> None:
    """Skip, or fail, a test where no small guest can be started."""
    for name in ('vmlinux', 'initramfs.cpio'):
        if not (GUEST_DIR / name).exists():
            requirements.require(
                test,
                'libvirt',
                '%s is not there; tools/guest/build.sh '
                'makes it' % (GUEST_DIR / name),
            )
    try:
        libvirt.open(URI).close()
    except libvirt.libvirtError as error:
        requirements.require(test, 'libvirt', '%s: %s' % (URI, error))


def require_deadline(test: ty.Any) -> None:
    """Skip, or fail, a test where this kernel has no SCHED_DEADLINE."""
    support = deadline.DeadlineBackend().supports()
    if not support.usable:
        requirements.require(
            test,
            'libvirt',
            'no SCHED_DEADLINE: %s' % ('; '.join(support.reasons)),
        )


def await_nothing_left(
    test: ty.Any, leftovers: Callable[[], Sequence[str]]
) -> None:
    """Fail a test unless what it leaves behind goes in time.

    :param leftovers: names what is left.
    """
    give_up_s = time.monotonic() + _GONE_S
    while left := leftovers():
        if time.monotonic() > give_up_s:
            test.fail('left behind: %s' % left)
        time.sleep(0.1)


def boot(start: Callable[[], None]) -> None:
    """Start a guest, and once more if it does not come up.

    :param start: of a :class:`vm.RunningDomain`.
    :raises vm.GuestNotReady: when it has not come up each time.
    """
    for number in range(_BOOTS):
        try:
            start()
            return
        except vm.GuestNotReady as problem:
            if number == _BOOTS - 1:
                raise
            LOG.warning('%s; it is started again', problem)


class Guest(fixtures.Fixture):
    """A small guest that runs for the length of a test.

    :param load: what it does: see tools/guest/init.
    :param wait: until it is up.
    :param cmdline: its kernel's command line; None for the usual one.
    :param fields: of :class:`domain_xml.DomainSpec`.
    """

    def __init__(
        self,
        load: str = 'idle',
        wait: bool = True,
        cmdline: str | None = None,
        **fields: ty.Any,
    ) -> None:
        super().__init__()
        self._load = load
        self._wait = wait
        self._cmdline = cmdline
        self._fields = fields

    def _setUp(self) -> None:
        folder = self.useFixture(fixtures.TempDir()).path
        spec = domain_xml.DomainSpec(
            name='vsched-test-%s' % uuids.uuid4().hex[:12],
            kernel=str(GUEST_DIR / 'vmlinux'),
            initrd=str(GUEST_DIR / 'initramfs.cpio'),
            cmdline=self._cmdline
            or domain_xml.cmdline('vsched.load=%s' % self._load),
            serial_file=os.path.join(folder, 'serial.log'),
            **self._fields,
        )
        self.running = vm.RunningDomain(
            spec, URI, ready_timeout_s=BOOT_S if self._wait else 0
        )
        self.addCleanup(self.running.stop)
        boot(self.running.start)

    @property
    def uuid(self) -> str:
        return self.running.uuid

    @property
    def handle(self) -> libvirt.virDomain:
        return self.running.handle

    def stop(self) -> None:
        """End it before the test does."""
        self.running.stop()


class SocketProxy(fixtures.Fixture):
    """A stretch of wire to libvirt that can be cut, and mended.

    What a client sees is what it sees of a daemon that dies, or that hangs,
    while nobody else's connection is touched.
    """

    def __init__(self, target: str = SOCKET) -> None:
        super().__init__()
        self._target = target
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._listener: socket.socket | None = None
        #: Cleared: bytes are held back.
        self.flowing = threading.Event()
        self.flowing.set()

    def _setUp(self) -> None:
        self._path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'socket'
        )
        self.addCleanup(self.flowing.set)
        self.addCleanup(self.cut)
        self.mend()

    @property
    def uri(self) -> str:
        """libvirt's URI through this wire."""
        return 'qemu+unix:///system?socket=%s' % self._path

    def cut(self) -> None:
        """End every connection and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            if listener is not None:
                listener.shutdown(socket.SHUT_RDWR)
                listener.close()
                os.unlink(self._path)
            ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Accept connections again."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        listener.listen()
        self._listener = listener
        threading.Thread(
            target=self._accept, args=(listener,), daemon=True
        ).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            with self._lock:
                self._ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(
                    target=self._carry, args=(one, other), daemon=True
                ).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        # An error is the cut, or the end of the other end.
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self.flowing.wait()
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        # Each end is closed by the one thread that reads it.
        one.close()
