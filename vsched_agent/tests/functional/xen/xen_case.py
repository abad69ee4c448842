# SPDX-License-Identifier: Apache-2.0

"""Tests for a node with Xen, in its first domain.

``tools/test.sh --xen`` runs them in the lab node. They fail elsewhere.
"""

from collections.abc import Callable
import dataclasses
import os
import pathlib
import subprocess
import time
import typing as ty
import uuid as uuids
from xml.sax import saxutils

import libvirt
from oslotest import base

from vsched_agent.tests import fixtures

URI = 'xen:///system'
#: Of guests in an emulated node whose CPUs are busy.
PATIENCE_S = 240.0
#: Where xenconsoled writes what guests say.
CONSOLES = pathlib.Path('/var/log/xen/console')

_DOMAIN = """\
<domain type='xen'>
  <name>%(name)s</name>
  <uuid>%(uuid)s</uuid>
  <memory unit='MiB'>128</memory>
  <vcpu current='%(vcpus)d'>%(max_vcpus)d</vcpu>
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


@dataclasses.dataclass(frozen=True, slots=True)
class Guest:
    """A running guest.

    :param name: its name.
    :param handle: libvirt's.
    """

    name: str
    handle: libvirt.virDomain

    @property
    def console(self) -> str:
        """Return what it has said."""
        path = CONSOLES / ('guest-%s.log' % self.name)
        return path.read_text(errors='replace') if path.exists() else ''


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
        self.connection = libvirt.open(URI)
        self.addCleanup(self.connection.close)
        before = self.domains()
        self.addCleanup(lambda: self.assertEqual(before, self.domains()))

    def domains(self) -> set[str]:
        """Return the names of all domains that Xen has."""
        return {line.split()[0] for line in run('xl', 'list').splitlines()[1:]}

    def eventually(self, check: Callable[[], ty.Any], what: str) -> None:
        """Wait until ``check`` gives something true."""
        give_up = time.monotonic() + PATIENCE_S
        while not check():
            if time.monotonic() > give_up:
                self.fail('never came: %s' % what)
            time.sleep(0.5)

    def guest(
        self,
        kind: str = 'pv',
        vcpus: int = 1,
        max_vcpus: int | None = None,
        words: str = '',
        devices: str = '',
    ) -> Guest:
        """Start a guest, and wait until it is up; it ends with the test.

        :param kind: of :data:`KINDS`.
        :param words: what it is told: see tools/guest/init.
        :param devices: of its definition.
        """
        machine, os_type = KINDS[kind]
        name = 'vsched-test-%s' % uuids.uuid4().hex[:12]
        guest = Guest(
            name,
            self.connection.createXML(
                _DOMAIN
                % {
                    'name': name,
                    'uuid': uuids.uuid4(),
                    'vcpus': vcpus,
                    'max_vcpus': max_vcpus or vcpus,
                    'machine': machine,
                    'os_type': os_type,
                    'kernel': fixtures.GUEST_DIR / 'vmlinux',
                    'initrd': fixtures.GUEST_DIR / 'initramfs.cpio',
                    'words': saxutils.escape(words),
                    'devices': devices,
                }
            ),
        )
        self.addCleanup(self.end, guest)
        self.eventually(
            lambda: 'vsched-guest ready' in guest.console,
            'a guest that is up, and not: %s' % guest.console[-1000:],
        )
        return guest

    def end(self, guest: Guest) -> None:
        """End a guest, and wait until nothing of it is left."""
        guest.handle.destroy()
        self.eventually(lambda: guest.name not in self.domains(), 'its end')
        (CONSOLES / ('guest-%s.log' % guest.name)).unlink(missing_ok=True)


def loop_device(path: os.PathLike[str]) -> str:
    """Make a block device of a file.

    :returns: the device.
    """
    return run('losetup', '--find', '--show', os.fspath(path)).strip()
