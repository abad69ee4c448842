# SPDX-License-Identifier: Apache-2.0

"""Finds vhost workers, the threads that move an instance's packets.

Since Linux 6.4 they are tasks of the process that opened vhost. Before, and
since 6.17 if configured (``fork_from_owner_default``), they are kernel
threads, children of kthreadd, and their time is in no process's. In both
cases the name is ``vhost-N``, N being the thread that opened vhost.
"""

from collections.abc import Container
import contextlib
import os
import re
import time

from vsched_agent.hypervisor import qemu_process

_NAME = re.compile(r'vhost-(\d+)\Z')
#: The parent of all kernel threads.
_KTHREADD = 2
#: The targets of a process's links to open vhost devices begin so.
_DEVICES = '/dev/vhost-'
#: Time between two scans of all processes, in seconds.
SCAN_INTERVAL_S = 30.0
#: The same when there is a process that may have new workers.
RESCAN_INTERVAL_S = 0.5


def is_worker(comm: str) -> bool:
    """Return whether a thread of that name is a worker."""
    return _NAME.match(comm) is not None


def opened(pid: int, proc: str = '/proc') -> bool:
    """Return whether a process has opened vhost, or may have.

    The open files of other users' processes are visible to root only.
    """
    folder = '%s/%d/fd' % (proc, pid)
    try:
        names = os.listdir(folder)
    except PermissionError:
        return True
    except OSError:
        return False
    for name in names:
        # Files may be closed at any moment.
        with contextlib.suppress(OSError):
            if os.readlink('%s/%s' % (folder, name)).startswith(_DEVICES):
                return True
    return False


class KernelWorkers:
    """Finds workers that are kernel threads.

    All processes are scanned at once, and rarely.

    :param proc: where procfs is.
    """

    def __init__(self, proc: str = '/proc') -> None:
        self._proc = proc
        self._scanned_s: float | None = None
        self._by_owner: dict[int, list[int]] = {}

    def of(self, owners: Container[int], changed: bool) -> list[int]:
        """Return the workers of threads that opened vhost.

        :param owners: the threads.
        :param changed: whether there may be new workers.
        """
        every_s = RESCAN_INTERVAL_S if changed else SCAN_INTERVAL_S
        if (
            self._scanned_s is None
            or time.monotonic() - self._scanned_s >= every_s
        ):
            self._scan()
        return sorted(
            tid
            for owner, tids in self._by_owner.items()
            if owner in owners
            for tid in tids
        )

    def _scan(self) -> None:
        self._scanned_s = time.monotonic()
        self._by_owner = {}
        for name in os.listdir(self._proc):
            if not name.isdecimal():
                continue
            comm = qemu_process.comm(int(name), self._proc)
            match = _NAME.match(comm) if comm else None
            if (
                match
                and qemu_process.parent(int(name), self._proc) == _KTHREADD
            ):
                self._by_owner.setdefault(int(match[1]), []).append(int(name))
