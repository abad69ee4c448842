# SPDX-License-Identifier: Apache-2.0

"""What benchmarks on real VMs need of the machine."""

import os

import libvirt

from benchmarks import frame
from vsched_agent.tests import fixtures


def guests() -> None:
    """The tiny guest, and a libvirt to run it.

    :raises frame.Unavailable: saying what is missing.
    """
    if not (fixtures.GUEST_DIR / 'vmlinux').exists():
        raise frame.Unavailable(
            'needs the tiny guest; tools/guest/build.sh makes it'
        )
    try:
        libvirt.open(fixtures.URI).close()
    except libvirt.libvirtError as error:
        raise frame.Unavailable('needs libvirt: %s' % error) from error


def servers() -> None:
    """The tiny guest with an HTTP server and an SQL database.

    :raises frame.Unavailable: saying what is missing.
    """
    guests()
    if not (fixtures.GUEST_DIR / 'servers.cpio').exists():
        raise frame.Unavailable(
            'needs servers.cpio of the tiny guest; tools/guest/build.sh '
            'makes it'
        )


def two_cpus() -> None:
    """CPUs for VMs to share.

    :raises frame.Unavailable: when there is one only.
    """
    if (os.cpu_count() or 1) < 2:
        raise frame.Unavailable('needs two CPUs')
