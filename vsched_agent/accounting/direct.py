# SPDX-License-Identifier: Apache-2.0

"""Measures what a hypervisor's process runs beside its vCPUs.

Emulator, I/O threads, vhost (where it is a task of the process) and
short-lived pool threads: their sum is the process's CPU time less what its
vCPU threads ran. The process's CPU clock includes ended threads, so nothing
is lost or counted twice between two passes, at one system call per instance.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import time
import typing as ty


def process_ns(pid: int) -> int | None:
    """Return the CPU time of all threads of a process, ended ones too.

    Running threads count up to their CPU's last tick.

    :returns: nanoseconds; None when the process has ended.
    """
    # clock_getcpuclockid(3): the pid's complement above three bits that
    # select the clock; 2 is the scheduler's.
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
    """Reads processes' CPU time beside their vCPUs, between two passes.

    Used by one thread at a time.

    :param clock: see :func:`process_ns`.
    """

    def __init__(
        self, clock: Callable[[int], int | None] = process_ns
    ) -> None:
        self._clock = clock
        self._processes: dict[str, _Process] = {}

    def used(
        self, uuid: str, pid: int, guest_ns: int, start_ticks: int = 0
    ) -> int:
        """Return what an instance's process used since the last call.

        The first call returns 0. A process other than that of the last call
        has started since then, and counts as a whole.

        :param guest_ns: what its vCPU threads ran in the same interval.
        :param start_ticks: when the process started; distinguishes it from
            an earlier one of the same number.
        :returns: nanoseconds, never below 0: the clocks are not read at the
            same moment; the next call corrects a negative difference.
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

    def checkpoint(self) -> dict[str, list[int]]:
        """Return the clocks of the last call, as JSON types."""
        return {
            uuid: [*one.identity, one.seen_ns, one.owed_ns]
            for uuid, one in self._processes.items()
        }

    def resume(self, checkpoint: Mapping[str, ty.Any]) -> None:
        """Continue from what :meth:`checkpoint` returned.

        :raises ValueError, TypeError, LookupError: when it is malformed.
        """
        resumed = {}
        for uuid, fields in checkpoint.items():
            pid, start_ticks, seen_ns, owed_ns = map(int, fields)
            resumed[str(uuid)] = _Process((pid, start_ticks), seen_ns, owed_ns)
        self._processes = resumed

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""
        self._processes.pop(uuid, None)
