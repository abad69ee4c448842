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

"""vhost's workers: which thread moves an instance's packets.

Since Linux 6.4 they are tasks of the process that opened vhost. Before, and
since 6.17 where it is asked for (``fork_from_owner_default``), they are
threads of the kernel, children of kthreadd, and their time is in no
process's. Either way one is called ``vhost-N``, N being the thread that
opened it.
"""

from collections.abc import Container
import contextlib
import os
import re
import time

from vsched_agent.hypervisor import qemu_process

_NAME = re.compile(r'vhost-(\d+)\Z')
#: The parent of all threads of the kernel.
_KTHREADD = 2
#: A process's open files, as their links say.
_DEVICES = '/dev/vhost-'
#: Between two looks through all processes, in seconds.
LOOK_S = 30.0
#: The same when there is a process that may have new ones.
LOOK_AGAIN_S = 0.5


def is_worker(comm: str) -> bool:
    """Whether a thread of that name is a worker."""
    return _NAME.match(comm) is not None


def opened(pid: int, proc: str = '/proc') -> bool:
    """Whether a process has opened vhost, or may have for all one can see.

    An agent without privileges can not look into other users' processes.
    """
    folder = '%s/%d/fd' % (proc, pid)
    try:
        names = os.listdir(folder)
    except PermissionError:
        return True
    except OSError:
        return False
    for name in names:
        # Files are closed at any moment.
        with contextlib.suppress(OSError):
            if os.readlink('%s/%s' % (folder, name)).startswith(_DEVICES):
                return True
    return False


class KernelWorkers:
    """Finds workers that are threads of the kernel.

    All processes are looked through at once, and rarely.

    :param proc: where procfs is.
    """

    def __init__(self, proc: str = '/proc') -> None:
        self._proc = proc
        self._looked_s: float | None = None
        self._by_owner: dict[int, list[int]] = {}

    def of(self, owners: Container[int], changed: bool) -> list[int]:
        """The workers that threads opened.

        :param owners: the threads.
        :param changed: there may be new ones.
        """
        every_s = LOOK_AGAIN_S if changed else LOOK_S
        if (self._looked_s is None or
                time.monotonic() - self._looked_s >= every_s):
            self._look()
        return sorted(tid for owner, tids in self._by_owner.items()
                      if owner in owners for tid in tids)

    def _look(self) -> None:
        self._looked_s = time.monotonic()
        self._by_owner = {}
        for name in os.listdir(self._proc):
            if not name.isdecimal():
                continue
            comm = qemu_process.comm(int(name), self._proc)
            match = _NAME.match(comm) if comm else None
            if match and qemu_process.parent(
                    int(name), self._proc) == _KTHREADD:
                self._by_owner.setdefault(int(match[1]), []).append(
                    int(name))
