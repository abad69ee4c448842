# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Notices vCPU threads that nobody tells of.

libvirt has no event for a vCPU that is plugged into a running domain, and
its thread has no reservation until somebody looks. The kernel keeps the
number of a process's threads as the link count of its folder ``task``: one
system call per domain is enough to see that it changed.
"""

from collections.abc import Callable
from collections.abc import Iterable
import os
import threading
import typing as ty

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Watched(ty.NamedTuple):
    """A process that should have this many threads."""

    uuid: str
    pid: int
    threads: int


class ThreadWatch:
    """Compares numbers of threads, from a thread of its own.

    :param interval_s: seconds between two looks.
    :param watched: what to look at, asked before each look.
    :param suspect: called with the UUID of a domain whose number of
        threads is another one. Until ``watched`` says the new number, it
        is called at each look.
    """

    def __init__(self, interval_s: float,
                 watched: Callable[[], Iterable[Watched]],
                 suspect: Callable[[str], ty.Any]) -> None:
        self._interval_s = interval_s
        self._watched = watched
        self._suspect = suspect
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='vsched-thread-watch', daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def look(self) -> None:
        """One look."""
        for one in self._watched():
            if count(one.pid) != one.threads:
                self._suspect(one.uuid)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            try:
                self.look()
            except Exception:
                LOG.exception('a look at the threads failed')


def count(pid: int, proc: str = '/proc') -> int:
    """How many threads a process has now; 0 when it is gone."""
    try:
        # Two links are the folder's own (proc_task_getattr in the
        # kernel's fs/proc/base.c adds the threads).
        return os.stat('%s/%d/task' % (proc, pid)).st_nlink - 2
    except OSError:
        return 0
