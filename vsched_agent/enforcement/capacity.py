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

"""What this host can promise, asked of its kernel."""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
from fractions import Fraction
import os
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import cgroup
from vsched_agent.enforcement import kernel
from vsched_agent.privileged import probing
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_lib.model import host
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

_UNITS_PER_CPU = 1 << reservation.KERNEL_BW_SHIFT
#: Less than this, beyond whole CPUs, a probe does not see.
_SEEN_UNITS = probing.LEAST_UNITS


@dataclasses.dataclass(frozen=True, slots=True)
class DeadlineThread:
    """One thread under SCHED_DEADLINE.

    :param pid: its process.
    :param tid: the thread.
    :param comm: its name.
    :param units: what it holds of the admitted bandwidth, 2**-20 CPU.
    """

    pid: int
    tid: int
    comm: str
    units: int


def deadline_threads(root: str = '/') -> list[DeadlineThread]:
    """Every thread on the host that holds deadline bandwidth.

    :param root: the file system's top, for tests with one of their own.
    """
    found = []
    for pid, tid in _threads(root):
        try:
            attr = syscalls.get_attr(tid)
            if attr.policy != syscalls.SCHED_DEADLINE:
                continue
            comm = cgroup.read_text(os.path.join(
                root, 'proc', str(pid), 'task', str(tid), 'comm'))
        except (ProcessLookupError, FileNotFoundError):
            continue
        # The frequency governor's own threads are in the class, and no
        # admission test ever saw them.
        if comm.startswith('sugov:'):
            continue
        found.append(DeadlineThread(
            pid, tid, comm, syscalls.kernel_bandwidth(
                attr.runtime_ns, attr.period_ns or attr.deadline_ns)))
    return found


def _threads(root: str) -> Iterator[tuple[int, int]]:
    top = os.path.join(root, 'proc')
    for pid in os.listdir(top):
        if pid.isdigit():
            try:
                tids = os.listdir(os.path.join(top, pid, 'task'))
            except (FileNotFoundError, ProcessLookupError):
                continue
            for tid in tids:
                yield int(pid), int(tid)


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """One look at the kernel's books, all in 2**-20 CPU.

    :param online: CPUs online at the time.
    :param free_units: what it still admitted.
    :param live_units: what live threads held.
    :param expected_units: what both should add up to; None when the kernel
        sets no bound.
    :param recovered_units: what was lost at a first look and there at the
        second: since Linux 6.15 reading the bound makes the books anew.
    """

    online: frozenset[int]
    free_units: int
    live_units: int
    expected_units: int | None
    recovered_units: int = 0

    @property
    def total_units(self) -> int:
        """What the kernel admits in all.

        Never more than it should: when threads end while the root domains
        are made anew, it can take their bandwidth off its books twice and
        admits too much for a while.
        """
        total = self.free_units + self.live_units
        if self.expected_units is None:
            return total
        return min(total, self.expected_units)

    @property
    def leaked_units(self) -> int:
        """What nobody holds and nobody can have."""
        if self.expected_units is None:
            return 0
        lost_units = self.expected_units - self.total_units
        return lost_units if lost_units >= _SEEN_UNITS else 0

    @property
    def balanced(self) -> bool:
        """Whether nothing is lost and nothing is there twice."""
        return self.expected_units is None or 0 <= (
            self.expected_units - self.free_units - self.live_units
        ) < _SEEN_UNITS

    @property
    def leaked_mcpu(self) -> int:
        """The leak in milli-CPU, rounded to the nearest."""
        return round(Fraction(
            self.leaked_units * reservation.MCPU_PER_CPU, _UNITS_PER_CPU))


class KernelCapacity:
    """The host's capacity, measured once and when something changed.

    What the kernel admits in all does not depend on what it holds at the
    moment, so our own reservations never make a new measurement needed.

    :param reserve_mcpu: milli-CPU left to the host.
    :param probe: asks the kernel what it still admits, see
        :func:`vsched_agent.privileged.sched.probe_free_bandwidth`.
    :param root: the file system's top, for tests with one of their own.
    """

    def __init__(self, reserve_mcpu: int = 0,
                 probe: Callable[[int], int] | None = None,
                 root: str = '/') -> None:
        self._reserve_mcpu = reserve_mcpu
        self._probe = probe or sched.probe_free_bandwidth
        self._root = root
        self._lock = threading.Lock()
        self._measured: Measured | None = None
        self._facts: kernel.KernelFacts | None = None

    def current(self) -> host.Capacity:
        """What the host can promise.

        Cheap while CPUs stay online and nothing was invalidated. A host
        whose kernel can not be asked promises nothing.
        """
        measured = self.measured()
        return host.Capacity(
            cpus=max(1, len(measured.online)),
            admissible=Fraction(measured.total_units, _UNITS_PER_CPU),
            reserve_mcpu=self._reserve_mcpu)

    def invalidate(self) -> None:
        """Ask the kernel again at the next occasion."""
        with self._lock:
            self._measured = None

    def measured(self) -> Measured:
        """The figures behind :meth:`current`."""
        online = kernel.online_cpus(self._root)
        with self._lock:
            if self._measured is None or self._measured.online != online:
                self._measured = self._measure(online)
            return self._measured

    def _measure(self, online: frozenset[int]) -> Measured:
        try:
            # Reading the bound makes newer kernels count anew, which would
            # hide what is lost, and while a thread is leaving they count it
            # wrong. So they are asked only when the books do not balance.
            first = self._look(online)
            if self._facts is not None and self._facts.online == online:
                first = self._expecting(first)
                for _ in range(_TRIES):
                    if first.balanced:
                        return first
                    # What a thread that has just ended held is free at its
                    # 0-lag time.
                    time.sleep(_SETTLE_S)
                    first = self._expecting(self._look(online))
            self._facts = kernel.KernelFacts.read(self._root)
            measured = self._expecting(first)
            if not measured.balanced:
                measured = dataclasses.replace(
                    self._expecting(self._look(online)),
                    recovered_units=measured.leaked_units)
        except OSError as failure:
            LOG.warning('the kernel can not be asked what it admits: %s',
                        failure)
            return Measured(online, 0, 0, None)
        if measured.recovered_units > measured.leaked_units:
            LOG.warning(
                '%d units of deadline bandwidth were held by no thread; the '
                'kernel has found %d of them again', measured.recovered_units,
                measured.recovered_units - measured.leaked_units)
        measured = dataclasses.replace(measured, recovered_units=max(
            0, measured.recovered_units - measured.leaked_units))
        if measured.leaked_units:
            LOG.warning(
                '%d mcpu of deadline bandwidth are held by no thread: the '
                'kernel admits %d of %d units', measured.leaked_mcpu,
                measured.total_units, measured.expected_units or 0)
        return measured

    def _expecting(self, look: Measured) -> Measured:
        facts = self._facts
        return dataclasses.replace(
            look, expected_units=facts.expected_units if facts else None)

    def _look(self, online: frozenset[int]) -> Measured:
        most = len(online) * _UNITS_PER_CPU
        # A thread that comes or goes between two looks would be counted
        # twice or not at all: look until nothing moved.
        for _ in range(_TRIES):
            live = _units(deadline_threads(self._root))
            free = self._probe(max(0, most - live))
            if live == _units(deadline_threads(self._root)):
                break
        return Measured(online, free, live, None)


_TRIES = 5
#: Between two looks at books that do not balance yet, in seconds.
_SETTLE_S = 0.05


def _units(threads: ty.Iterable[DeadlineThread]) -> int:
    return sum(thread.units for thread in threads)
