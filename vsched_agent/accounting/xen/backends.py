# SPDX-License-Identifier: Apache-2.0

"""Finds what serves a domain's devices in the first domain (Dom0) of Xen.

Devices have their other ends in the first domain: netback and blkback, whose
threads are kernel threads with the number of the domain in their name:
``vif1.0-q0-guest-rx`` and ``vif1.0-q0-dealloc`` for each queue of an
interface, ``1.xvda-0`` for each ring of a disk. An interface may have another
name, which its threads then have: ``web1-q0-dealloc``. Kernels before 5.17 cut
names after 15 characters. blkback counts requests by itself, in sysfs.
"""

from collections.abc import Iterable
import os
import re
import time

from oslo_log import log as logging

from vsched_agent.accounting.base import Role
from vsched_agent.accounting import kernel_threads
from vsched_agent.hypervisor import base

LOG = logging.getLogger(__name__)

_NETBACK = re.compile(r'vif([1-9]\d{0,4})\.\d+-')
#: The same of an interface with any other name.
_NAMED = re.compile(r'(.{1,15})-q\d+-')
#: Older kernels write the driver's name first.
_BLKBACK = re.compile(
    r'(?:blkback\.)?([1-9]\d{0,4})\.[a-z][a-z0-9]*(?:-\d*)?\Z'
)
#: Ends of devices by bus address: class, domain and number of the device.
_DISK = re.compile(r'vbd-(\d+)-(\d+)\Z')
_DEVICES = 'bus/xen-backend/devices'
#: Time between two scans of all processes, in seconds.
SCAN_INTERVAL_S = 30.0
#: The same while a domain is new: threads start when its driver connects.
RESCAN_INTERVAL_S = 0.5


def server_of(comm: str) -> tuple[int, Role] | None:
    """Return which domain a kernel thread of that name serves, and how.

    netback's threads have the role of vhost's workers, which do the same, and
    blkback's that of threads dedicated to disks.
    """
    for name, role in ((_NETBACK, Role.VHOST), (_BLKBACK, Role.IOTHREAD)):
        match = name.match(comm)
        if match:
            return int(match[1]), role
    return None


class BackendThreads:
    """Finds the threads of the first domain that serve another one.

    All processes are scanned at once, and rarely.

    :param proc: where procfs is.
    """

    def __init__(self, proc: str = '/proc') -> None:
        self._proc = proc
        self._scanned_s: float | None = None
        self._by_domain: dict[int, dict[int, Role]] = {}
        self._by_device: dict[str, dict[int, Role]] = {}

    def of(
        self, domid: int, changed: bool, devices: Iterable[str] = ()
    ) -> dict[int, Role]:
        """Return the threads that serve a domain.

        :param changed: whether there may be new ones.
        :param devices: names of the domain's interfaces.
        """
        every_s = RESCAN_INTERVAL_S if changed else SCAN_INTERVAL_S
        if (
            self._scanned_s is None
            or time.monotonic() - self._scanned_s >= every_s
        ):
            self._scan()
        found = dict(self._by_domain.get(domid, {}))
        for device in devices:
            found.update(self._by_device.get(device, {}))
        return found

    def _scan(self) -> None:
        self._scanned_s = time.monotonic()
        self._by_domain, self._by_device = {}, {}
        for tid, (owner, role) in kernel_threads.matching(_owner, self._proc):
            if isinstance(owner, int):
                self._by_domain.setdefault(owner, {})[tid] = role
            else:
                self._by_device.setdefault(owner, {})[tid] = role


def _owner(comm: str) -> tuple[int | str, Role] | None:
    """Return the domain's number, or the interface, that a thread serves."""
    found = server_of(comm)
    if found is not None:
        return found
    match = _NAMED.match(comm)
    return None if match is None else (match[1], Role.VHOST)


def disk_counters(
    domids: Iterable[int], sys: str = '/sys'
) -> dict[int, dict[str, base.DiskCounters]]:
    """Return what blkback has counted, by domain and number of the disk.

    Disks that a process of QEMU serves have no counters.

    :param sys: where sysfs is.
    """
    required = frozenset(domids)
    found: dict[int, dict[str, base.DiskCounters]] = {}
    folder = os.path.join(sys, _DEVICES)
    try:
        names = os.listdir(folder)
    except OSError as problem:
        LOG.debug('%s: %s', folder, problem)
        return found
    for name in names:
        match = _DISK.match(name)
        if not match or int(match[1]) not in required:
            continue
        statistics = os.path.join(folder, name, 'statistics')
        try:
            counters = base.DiskCounters(
                _number(statistics, 'rd_req'), _number(statistics, 'wr_req')
            )
        except (OSError, ValueError) as problem:
            # They are there while the device is connected.
            LOG.debug('%s: %s', statistics, problem)
            continue
        found.setdefault(int(match[1]), {})[match[2]] = counters
    return found


def _number(folder: str, name: str) -> int:
    with open(os.path.join(folder, name), encoding='ascii') as file:
        return int(file.read(32))
