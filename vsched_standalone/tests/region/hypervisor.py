# SPDX-License-Identifier: Apache-2.0

"""A compute of a region that boots real guests, by libvirt and QEMU.

Its libvirtd is its own, in namespaces where its folders and its hostname are
others than the machine's: nova-compute refuses a hypervisor that has domains
which its database does not know.
"""

import contextlib
import os
import sys
import time
import typing as ty

from keystoneauth1 import adapter
import libvirt

from vsched_agent.profiling.guest import domain_xml
from vsched_lib.tests import openstack_services
from vsched_lib.tests import requirements
from vsched_standalone.tests import outages
from vsched_standalone.tests.region import daemon
from vsched_standalone.tests.region import glance
from vsched_standalone.tests.region import nova

_BIN = os.path.dirname(sys.executable)
_LIBVIRTD = '/usr/sbin/libvirtd'
_START_S = 240
#: What the guest's first process says on its console.
READY = 'vsched-guest ready'

# Where libvirtd keeps what, and what is there instead.
_FOLDERS = {
    'etc': '/etc/libvirt',
    'run': '/run/libvirt',
    'lib': '/var/lib/libvirt',
    'logs': '/var/log/libvirt',
}
_LIBVIRTD_CONF = """
auth_unix_ro = "none"
auth_unix_rw = "none"
"""
# As tools/services/libvirtd.sh has it.
_QEMU_CONF = """
user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
namespaces = []
seccomp_sandbox = 0
"""


def require(test: ty.Any) -> None:
    """End a test that boots guests where there can be none.

    :param test: the running test, or its class.
    """
    for path in (_LIBVIRTD, os.path.join(outages.GUEST_DIR, 'vmlinux')):
        if not os.path.exists(path):
            requirements.require(test, 'libvirt', path + ' is missing')


class Libvirtd(daemon.Daemon):
    """A libvirtd of a host's own.

    :param host: what it is to think that the machine is called.
    """

    def __init__(self, host: str) -> None:
        super().__init__('libvirtd of ' + host, self._line)
        self.host = host

    def _line(self, folder: str) -> list[str]:
        mounts = []
        for name, place in _FOLDERS.items():
            os.makedirs(os.path.join(folder, name), exist_ok=True)
            if not os.path.isdir(place):
                # No libvirtd has run since the machine was booted.
                os.makedirs(place)
                self.addCleanup(_remove_empty, place)
            mounts.append('mount --bind "$1/%s" %s' % (name, place))
        for name, text in (
            ('libvirtd.conf', _LIBVIRTD_CONF),
            ('qemu.conf', _QEMU_CONF),
        ):
            with open(
                os.path.join(folder, 'etc', name), 'w', encoding='ascii'
            ) as file:
                file.write(text)
        start = 'exec %s -p "$1/pid"' % _LIBVIRTD
        return [
            'unshare',
            '--mount',
            '--uts',
            '--propagation',
            'slave',
            'sh',
            '-c',
            ' && '.join(['hostname "$2"', *mounts, start]),
            'sh',
            folder,
            self.host,
        ]

    @property
    def run_dir(self) -> str:
        """Where the pid files of its domains are."""
        return os.path.join(self.folder, 'run', 'qemu')

    @property
    def uri(self) -> str:
        """How clients reach it."""
        return 'qemu+unix:///system?socket=' + self._socket

    @property
    def _socket(self) -> str:
        return os.path.join(self.folder, 'run', 'libvirt-sock')

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        give_up = time.monotonic() + _START_S
        while True:
            self.check()
            # libvirt writes of what it doesn't find to the test's output.
            if os.path.exists(self._socket):
                self.domains()
                return
            if time.monotonic() > give_up:
                raise RuntimeError('%s does not answer' % self.name)
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it, and the guests that would outlive it."""
        if self._process is not None and self._process.poll() is None:
            with libvirt.open(self.uri) as connection:
                for one in connection.listAllDomains():
                    try:
                        if one.isActive():
                            one.destroy()
                    except libvirt.libvirtError as failure:
                        # It may end by itself meanwhile.
                        if failure.get_error_code() not in _ENDED:
                            raise
        super().stop()

    def domains(self) -> list[str]:
        """The names of the domains that it has."""
        with libvirt.open(self.uri) as connection:
            return [one.name() for one in connection.listAllDomains()]

    def guests(self) -> set[int]:
        """The processes of the domains that run."""
        found: set[int] = set()
        if not os.path.isdir(self.run_dir):
            # It has not started.
            return found
        for name in os.listdir(self.run_dir):
            # Its own is there as well.
            if name.endswith('.pid') and name != 'driver.pid':
                with open(
                    os.path.join(self.run_dir, name), encoding='ascii'
                ) as file:
                    found.add(int(file.read()))
        return found


#: Errors of a domain that ended between two calls.
_ENDED = (libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID)


def _remove_empty(folder: str) -> None:
    # Another libvirtd may use it by now.
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def compute(
    shared: nova.Nova, libvirtd: Libvirtd, instances: str
) -> daemon.Daemon:
    """A nova-compute for it; nothing is started.

    :param instances: the folder of its guests' disks, which others may
        share, as they do where it is on a network.
    """

    def command(folder: str) -> list[str]:
        sections = shared.sections(folder, libvirtd.host)
        config = os.path.join(folder, 'nova.conf')
        sections['DEFAULT'] |= {
            'compute_driver': 'libvirt.LibvirtDriver',
            'instances_path': instances,
            'reserved_host_memory_mb': 0,
            # The guest does not listen to who wants it to shut down.
            'shutdown_timeout': 0,
        }
        os.makedirs(instances, exist_ok=True)
        sections['libvirt'] = {
            'connection_uri': libvirtd.uri,
            'virt_type': 'qemu',
            'cpu_mode': 'none',
            'images_type': 'raw',
            'hw_machine_type': 'x86_64=q35',
            'wait_soft_reboot_seconds': 1,
        }
        # Root needs nobody to become root.
        sections['nova_sys_admin'] = {
            'helper_command': '%s --config-file %s'
            % (os.path.join(_BIN, 'privsep-helper'), config)
        }
        return [
            sys.executable,
            os.path.join(_BIN, 'nova-compute'),
            '--config-file',
            openstack_services.write(config, sections),
        ]

    return daemon.Daemon('nova-compute of ' + libvirtd.host, command)


def upload(images: adapter.Adapter) -> str:
    """The images of a tiny guest that keeps its CPU busy; which to boot."""
    parts = {}
    for name, path, form in (
        ('kernel_id', 'vmlinux', 'aki'),
        ('ramdisk_id', 'initramfs.cpio', 'ari'),
    ):
        with open(os.path.join(outages.GUEST_DIR, path), 'rb') as file:
            parts[name] = glance.upload(images, path, file.read(), form, form)
    return glance.upload(
        images,
        'guest',
        b'\0' * 2**20,
        **parts,
        os_command_line=domain_xml.cmdline('vsched.load=burn'),
    )
