# SPDX-License-Identifier: Apache-2.0

"""Tests for a node with Xen, in its first domain.

``tools/test.sh --xen`` runs them in the lab node. They fail elsewhere.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import os
import pathlib
import subprocess
import time
import types
import typing as ty
import uuid as uuids
from xml.sax import saxutils

import fixtures as fixture_base
import libvirt
from oslotest import base

from vsched_agent.enforcement.xen import capacity as xen_capacity
from vsched_agent.host import cpu_list
from vsched_agent.hypervisor import base as hypervisor_base
from vsched_agent.hypervisor.libvirt import events
from vsched_agent.hypervisor.libvirt import metadata as definitions
from vsched_agent.hypervisor.xen import driver
from vsched_agent.privileged import xen
from vsched_agent.reservations import enforcer
from vsched_agent.state import directory
from vsched_agent.tests import fixtures
from vsched_agent.tests import hypervisor_suite

URI = 'xen:///system'
#: Of guests in an emulated node whose CPUs are busy.
PATIENCE_S = 240.0
#: Where xenconsoled writes what guests say.
CONSOLES = pathlib.Path('/var/log/xen/console')

_DOMAIN = """\
<domain type='xen'>
  <name>%(name)s</name>
  <uuid>%(uuid)s</uuid>
  <metadata>%(metadata)s</metadata>
  <memory unit='MiB'>128</memory>
  <vcpu current='%(vcpus)d'>%(max_vcpus)d</vcpu>
  <cputune>%(pins)s</cputune>
  <os>
    <type arch='x86_64' machine='%(machine)s'>%(os_type)s</type>
    <kernel>%(kernel)s</kernel>
    <initrd>%(initrd)s</initrd>
    <cmdline>console=hvc0 quiet mitigations=off %(words)s</cmdline>
  </os>
  <clock offset='utc'/>
  <on_crash>destroy</on_crash>
  <devices>
    %(devices)s
    <console type='pty'><target type='xen' port='0'/></console>
  </devices>
</domain>
"""
#: Kinds of guests: machine and type of libvirt.
KINDS = {'pv': ('xenpv', 'linux'), 'pvh': ('xenpvh', 'xenpvh')}


def run(*command: str) -> str:
    """Run a program.

    :returns: its output.
    :raises AssertionError: with what it said, when it fails.
    """
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise AssertionError('%s: %s' % (' '.join(command), done.stdout))
    return done.stdout


def scheduler() -> str:
    """Return the hypervisor's scheduler, by the name that it has itself."""
    for line in run('xl', 'info').splitlines():
        name, _, value = line.partition(':')
        if name.strip() == 'xen_scheduler':
            return value.strip()
    raise AssertionError('xl info names no scheduler')


def definition(
    kind: str = 'pv',
    vcpus: int = 1,
    max_vcpus: int | None = None,
    words: str = '',
    devices: str = '',
    metadata: str = '',
    pins: Mapping[int, frozenset[int]] = types.MappingProxyType({}),
) -> tuple[str, str, str]:
    """Define a guest: see :meth:`XenCase.guest`.

    :returns: its name, its UUID and its definition.
    """
    machine, os_type = KINDS[kind]
    uuid = str(uuids.uuid4())
    name = 'vsched-test-%s' % uuid[-12:]
    return (
        name,
        uuid,
        _DOMAIN
        % {
            'name': name,
            'uuid': uuid,
            'vcpus': vcpus,
            'max_vcpus': max_vcpus or vcpus,
            'machine': machine,
            'os_type': os_type,
            'kernel': fixtures.GUEST_DIR / 'vmlinux',
            'initrd': fixtures.GUEST_DIR / 'initramfs.cpio',
            'words': saxutils.escape(words),
            'devices': devices,
            'metadata': metadata,
            'pins': ''.join(
                '<vcpupin vcpu="%d" cpuset="%s"/>'
                % (index, cpu_list.render(cpus))
                for index, cpus in pins.items()
            ),
        },
    )


def console_path(name: str) -> pathlib.Path:
    """Return the file of a guest's console."""
    return CONSOLES / ('guest-%s.log' % name)


def console(name: str) -> str:
    """Return what a guest has said."""
    path = console_path(name)
    return path.read_text(errors='replace') if path.exists() else ''


@dataclasses.dataclass(frozen=True, slots=True)
class Guest:
    """A running guest.

    :param name: its name.
    :param uuid: its UUID.
    :param handle: libvirt's.
    """

    name: str
    uuid: str
    handle: libvirt.virDomain

    @property
    def console(self) -> str:
        """Return what it has said."""
        return console(self.name)

    @property
    def domid(self) -> int:
        """Return Xen's number of it, as it is now."""
        return int(run('xl', 'domid', self.name))


class XenCase(base.BaseTestCase):
    """Guests under Xen, and a host that is left as it was found."""

    def setUp(self) -> None:
        super().setUp()
        try:
            found = pathlib.Path('/proc/xen/capabilities').read_text()
        except OSError as error:
            found = str(error)
        if 'control_d' not in found:
            self.fail('this is not the first domain of a Xen: %s' % found)
        # libvirt prints what it raises as well.
        libvirt.registerErrorHandler(lambda _context, _error: None, None)
        # The daemon closes connections whose client does not answer its
        # probes, which the event loop does where it is in use.
        events.LOOP.acquire()
        self.addCleanup(events.LOOP.release)
        self.connection = libvirt.open(URI)
        self.addCleanup(self.connection.close)
        before = self.domains()
        self.addCleanup(lambda: self.assertEqual(before, self.domains()))

    def domains(self) -> set[str]:
        """Return the names of all domains that Xen has."""
        return {line.split()[0] for line in run('xl', 'list').splitlines()[1:]}

    def eventually(
        self, look: Callable[[], ty.Any], what: str | Callable[[], str]
    ) -> None:
        """Wait until ``look`` gives something true."""
        give_up = time.monotonic() + PATIENCE_S
        while not look():
            if time.monotonic() > give_up:
                self.fail(
                    'never came: %s'
                    % (what if isinstance(what, str) else what())
                )
            time.sleep(0.5)

    def guest(
        self,
        kind: str = 'pv',
        vcpus: int = 1,
        max_vcpus: int | None = None,
        words: str = '',
        devices: str = '',
        metadata: str = '',
        pins: Mapping[int, frozenset[int]] = types.MappingProxyType({}),
        wait: bool = True,
    ) -> Guest:
        """Start a guest; it ends with the test.

        :param kind: of :data:`KINDS`.
        :param words: what it is told: see tools/guest/init.
        :param devices: of its definition.
        :param metadata: likewise.
        :param pins: CPUs of the host by vCPU.
        :param wait: until it is up.
        """
        name, uuid, text = definition(
            kind, vcpus, max_vcpus, words, devices, metadata, pins
        )
        guest = Guest(name, uuid, self.connection.createXML(text))
        self.addCleanup(self.end, guest)
        if wait:
            self.wait_until_up(guest)
        return guest

    def wait_until_up(self, guest: Guest) -> None:
        """Wait until a guest has booted."""
        self.eventually(
            lambda: 'vsched-guest ready' in guest.console,
            lambda: 'a guest that is up: %s' % guest.console[-1000:],
        )

    def end(self, guest: Guest) -> None:
        """End a guest, and wait until nothing of it is left."""
        try:
            guest.handle.destroy()
        except libvirt.libvirtError:
            # It has ended, or the daemon has: libvirt 9.0 was seen to crash.
            if guest.name in self.domains():
                run('xl', 'destroy', guest.name)
        self.eventually(lambda: guest.name not in self.domains(), 'its end')
        console_path(guest.name).unlink(missing_ok=True)


class BackendCase(XenCase):
    """A backend of Xen, with the real helper.

    :ivar backend: set by the class of the test.
    """

    backend: xen_capacity.Backend

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(xen.xen_pctxt.stop)
        self.backend = self.make_backend()

    def make_backend(self) -> xen_capacity.Backend:
        """Return the backend of the scheduler that runs."""
        raise NotImplementedError


class ReservationCase(BackendCase, hypervisor_suite.Watching):
    """What the agent does, by its own parts: driver, enforcer and journal."""

    patience_s = PATIENCE_S

    def setUp(self) -> None:
        super().setUp()
        self.state = directory.open_state(
            self.useFixture(fixture_base.TempDir()).path
        )
        self.addCleanup(self.state.close)
        capacity = xen_capacity.XenCapacity([self.backend])
        self.enforcer = enforcer.Enforcer(
            {self.backend.name: self.backend},
            lambda name: self.backend.supports(),
            capacity,
            self.state.journal,
            replacing=capacity.replacing,
        )
        self.hypervisor = self.started()

    def make_hypervisor(self, **options: ty.Any) -> driver.XenHypervisor:
        return driver.XenHypervisor(
            call_timeout_s=60.0, keepalive_s=20, watch_interval_s=5.0
        )

    def instance(
        self, **options: ty.Any
    ) -> tuple[Guest, hypervisor_base.Domain]:
        """Start a guest that is an instance; it need not be up.

        :param options: see :meth:`XenCase.guest`.
        """
        guest = self.guest(wait=False, **options)
        return guest, self.one(self.hypervisor, guest.uuid)


def loop_device(path: os.PathLike[str]) -> str:
    """Make a block device of a file.

    :returns: the device.
    """
    return run('losetup', '--find', '--show', os.fspath(path)).strip()


def disk_xml(device: str) -> str:
    """Return the definition of a guest's disk.

    :param device: the block device that it is.
    """
    return (
        '<disk type="block" device="disk"><driver name="phy"/>'
        '<source dev="%s"/><target dev="xvda" bus="xen"/></disk>' % device
    )


def metadata(extra_specs: Mapping[str, str]) -> str:
    """Return the metadata of a guest with extra specs."""
    if not extra_specs:
        return ''
    specs = ''.join(
        '<vsched:extra_spec name=%s>%s</vsched:extra_spec>'
        % (saxutils.quoteattr(name), saxutils.escape(text))
        for name, text in extra_specs.items()
    )
    return '<vsched:reservation xmlns:vsched="%s">%s</vsched:reservation>' % (
        definitions.PLAIN_NS,
        specs,
    )
