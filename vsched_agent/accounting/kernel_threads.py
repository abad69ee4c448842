# SPDX-License-Identifier: Apache-2.0

"""Finds kernel threads that serve one instance.

They are children of kthreadd and their time is in no process's. Each is named
after a thread that it serves:

* ``vhost-N`` moves packets, see :mod:`vsched_agent.accounting.vhost`. It
  starts with a network card, which may be plugged in at any time.
* ``kvm-pit/N`` and, before Linux 6.12, ``kvm-nx-lpage-recovery-N`` are KVM's.
  They start with the virtual machine. The kernel shows the second name whole
  since Linux 5.17; on older ones its thread counts as the host's own.
"""

from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterator
import os
import re
import time
import typing as ty

from vsched_agent.accounting import base
from vsched_agent.hypervisor import qemu_process

Role = base.Role

_NAMES = (
    (Role.VHOST, re.compile(r'vhost-(\d+)\Z')),
    (Role.KVM, re.compile(r'kvm-(?:pit/|nx-lpage-recovery-)(\d+)\Z')),
)
_Match = ty.TypeVar('_Match')
#: The parent of all kernel threads.
_KTHREADD = 2
#: Time between two scans of all processes, in seconds.
SCAN_INTERVAL_S = 30.0
#: The same when there is a process that may have new threads.
RESCAN_INTERVAL_S = 0.5


class Scanner:
    """Finds the kernel threads of all instances.

    All processes are scanned at once, and rarely.

    :param proc: where procfs is.
    """

    def __init__(self, proc: str = '/proc') -> None:
        self._proc = proc
        self._scanned_s: float | None = None
        self._by_owner: dict[int, dict[int, Role]] = {}
        #: The number of scans so far.
        self.scans = 0

    def of(self, owners: Container[int], changed: bool) -> dict[int, Role]:
        """Return the kernel threads that serve these threads.

        :param owners: the threads.
        :param changed: whether there may be new kernel threads.
        """
        every_s = RESCAN_INTERVAL_S if changed else SCAN_INTERVAL_S
        if (
            self._scanned_s is None
            or time.monotonic() - self._scanned_s >= every_s
        ):
            self._scan()
        return {
            tid: role
            for owner, threads in self._by_owner.items()
            if owner in owners
            for tid, role in sorted(threads.items())
        }

    def _scan(self) -> None:
        self._scanned_s = time.monotonic()
        self.scans += 1
        self._by_owner = {}
        for tid, (owner, role) in matching(served_by, self._proc):
            self._by_owner.setdefault(owner, {})[tid] = role


def served_by(comm: str) -> tuple[int, Role] | None:
    """Return which thread a kernel thread of that name serves, and how."""
    for role, pattern in _NAMES:
        match = pattern.match(comm)
        if match:
            return int(match[1]), role
    return None


def matching(
    match: Callable[[str], _Match | None], proc: str
) -> Iterator[tuple[int, _Match]]:
    """Yield the kernel threads whose names match, and what was matched.

    :param match: returns None of names that do not.
    :param proc: where procfs is.
    """
    for name in os.listdir(proc):
        if not name.isdecimal():
            continue
        found = match(qemu_process.comm(int(name), proc) or '')
        # A process may give itself any name.
        if (
            found is not None
            and qemu_process.parent(int(name), proc) == _KTHREADD
        ):
            yield int(name), found


class Search:
    """What is still to be found for one process.

    KVM's threads are there when the process is first seen, but not
    necessarily in the last scan: the next one is searched too, and then no
    more. Those of vhost may come later.

    :param scanner: of all processes.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._used = 0
        self._last = 1
        #: Whether vhost is open, without a worker in the process.
        self.vhost = False

    @property
    def due(self) -> bool:
        """Whether there may be threads that are not found yet."""
        return self.vhost or self._used < self._last

    def found(self, owners: Container[int], changed: bool) -> dict[int, Role]:
        """Return the kernel threads that serve the process.

        :param owners: its own threads.
        :param changed: whether there may be new ones.
        """
        found = self._scanner.of(owners, changed)
        if not self._used:
            self._last = self._scanner.scans + 1
        self._used = self._scanner.scans
        return found
