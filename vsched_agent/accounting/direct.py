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

"""What a hypervisor's process spends on its instance beside the vCPUs.

Emulator, I/O threads, vhost (where it is a task of the process) and pool
threads that come and go: all of them are the process's CPU time less what
its vCPU threads ran. The process's CPU clock counts threads that have ended
as well, so nothing is lost between two passes and nothing is counted twice,
for one system call an instance.
"""

from collections.abc import Callable
import dataclasses
import time


def process_ns(pid: int) -> int | None:
    """CPU time of all threads a process has, and has had.

    Threads that run count up to their CPU's last tick.

    :returns: nanoseconds; None when it is gone.
    """
    # clock_getcpuclockid(3): the process's complement above three bits that
    # say which of its clocks; 2 is the scheduler's.
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None

@dataclasses.dataclass(slots=True)
class _Process:
    identity: tuple[int, int]
    seen_ns: int
    owed_ns: int = 0


class DirectMeter:
    """Reads what processes used beside their vCPUs between two passes.

    Used by one thread at a time.

    :param clock: see :func:`process_ns`.
    """

    def __init__(self, clock: Callable[[int], int | None] = process_ns,
                 ) -> None:
        self._clock = clock
        self._processes: dict[str, _Process] = {}

    def used(self, uuid: str, pid: int, guest_ns: int,
             start_ticks: int = 0) -> int:
        """What an instance's process used since the last call.

        The first call only reads. A process other than the last time's is
        younger than the last call, and counts as a whole.

        :param guest_ns: what its vCPU threads ran in the same while.
        :param start_ticks: when the process started: its number may be that
            of an earlier one.
        :returns: nanoseconds, never below 0: clocks are read one after the
            other, and what one is ahead is made up for by the next call.
        """
        identity = pid, start_ticks
        now_ns = self._clock(pid)
        known = self._processes.get(uuid)
        if now_ns is None:
            self.forget(uuid)
            return 0
        if known is None:
            self._processes[uuid] = _Process(identity, now_ns)
            return 0
        balance_ns = now_ns - guest_ns
        if known.identity == identity:
            balance_ns += known.owed_ns - known.seen_ns
        self._processes[uuid] = _Process(identity, now_ns, min(0, balance_ns))
        return max(0, balance_ns)

    def forget(self, uuid: str) -> None:
        """The instance is gone."""
        self._processes.pop(uuid, None)
