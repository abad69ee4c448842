# SPDX-License-Identifier: Apache-2.0

"""Detect new vCPU threads without an event.

libvirt has no event for a vCPU that is plugged into a running domain, and its
thread has no reservation until it is detected. The number of a process's
threads is the link count of its folder ``task``: one system call per domain
detects a change.
"""

from collections.abc import Callable
from collections.abc import Iterable
import os
import typing as ty

from vsched_agent.hypervisor import watch


class Watched(ty.NamedTuple):
    """A process and its expected number of threads."""

    uuid: str
    pid: int
    threads: int


class ThreadWatch(watch.Watch):
    """Compares numbers of threads, in a thread of its own.

    :param interval_s: seconds between two checks.
    :param watched: returns what to check, called before each check.
    :param changed: called with the UUID of a domain whose number of threads
        differs, at each check until ``watched`` returns the new number.
    """

    def __init__(
        self,
        interval_s: float,
        watched: Callable[[], Iterable[Watched]],
        changed: Callable[[str], ty.Any],
    ) -> None:
        super().__init__('vsched-thread-watch', interval_s, self._compare)
        self._watched = watched
        self._changed = changed

    def _compare(self) -> None:
        for one in self._watched():
            if count(one.pid) != one.threads:
                try:
                    self._changed(one.uuid)
                except Exception as error:
                    self._problems.failed(
                        one.uuid,
                        error,
                        'the threads of %s could not be checked',
                        one.uuid,
                    )


def count(pid: int, proc: str = '/proc') -> int:
    """Return how many threads a process has; 0 when it has ended."""
    try:
        # Two links are the folder's own; proc_task_getattr in the kernel's
        # fs/proc/base.c adds the threads.
        return os.stat('%s/%d/task' % (proc, pid)).st_nlink - 2
    except OSError:
        return 0
