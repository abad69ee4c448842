# SPDX-License-Identifier: Apache-2.0

"""The CPU capacity that this host can reserve, as measured in its kernel."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
from fractions import Fraction
import os
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.host import kernel
from vsched_agent.privileged import probe as probing
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_lib.model import host
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

_UNITS_PER_CPU = 1 << reservation.KERNEL_BW_SHIFT
#: A probe does not detect less than this beyond whole CPUs.
_SEEN_UNITS = probing.LEAST_UNITS


class Leaks(ty.Protocol):
    """What is known of bandwidth that nothing holds."""

    @property
    def leaked_mcpu(self) -> int:
        """Return it in milli-CPU."""


class HostCapacity(ty.Protocol):
    """Source of a host's capacity, whatever schedules there."""

    def current(self) -> host.Capacity:
        """Return what the host can reserve."""

    def invalidate(self) -> None:
        """Measure again at the next call."""

    def measured(self) -> Leaks:
        """Return what is known besides."""


@dataclasses.dataclass(frozen=True, slots=True)
class DeadlineThread:
    """One thread under SCHED_DEADLINE.

    :param pid: its process.
    :param tid: the thread.
    :param comm: its name.
    :param units: its part of the admitted bandwidth, 2**-20 CPU.
    :param reclaims: whether it uses bandwidth that no thread reserved.
    """

    pid: int
    tid: int
    comm: str
    units: int
    reclaims: bool = False


def deadline_threads(root: str = '/') -> list[DeadlineThread]:
    """Return every thread on the host that holds deadline bandwidth.

    :param root: root of the file system; tests use their own.
    """
    found = []
    for pid, tid in threads(root):
        try:
            attr = syscalls.get_attr(tid)
            if attr.policy != syscalls.SCHED_DEADLINE:
                continue
            comm = cgroup.read_text(
                os.path.join(root, 'proc', str(pid), 'task', str(tid), 'comm')
            )
        except (ProcessLookupError, FileNotFoundError):
            continue
        # The frequency governor's own threads are in the class without
        # admission control.
        if comm.startswith('sugov:'):
            continue
        found.append(
            DeadlineThread(
                pid,
                tid,
                comm,
                syscalls.kernel_bandwidth(
                    attr.runtime_ns, attr.period_ns or attr.deadline_ns
                ),
                bool(attr.flags & syscalls.FLAG_RECLAIM),
            )
        )
    return found


def threads(root: str = '/') -> Iterator[tuple[int, int]]:
    """Yield the process and the id of every thread on the host.

    :param root: root of the file system; tests use their own.
    """
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
    """One sample of the kernel's admission control, in 2**-20 CPU.

    :param online: CPUs online at the time.
    :param free_units: what it still admitted outside of partitions.
    :param live_units: what live threads held.
    :param expected_units: the sum of both when nothing leaked; None when the
        kernel sets no bound.
    :param recovered_units: leaked in a first sample and free in the second:
        since Linux 6.15 reading the bound recomputes the sums.
    :param fair_units: what the fair servers have of the bound. Linux 6.12
        forgets it when it recomputes the sums, and admits it as well.
    :param partition_cpus: CPUs in cpuset partitions.
    :param partition_live_units: what live threads held there.
    """

    online: frozenset[int]
    free_units: int
    live_units: int
    expected_units: int | None
    recovered_units: int = 0
    fair_units: int = 0
    partition_cpus: frozenset[int] = frozenset()
    partition_live_units: int = 0

    @property
    def _sum_units(self) -> int:
        """The sum of what is free and what is held on all CPUs.

        In a partition the kernel admits its part of the bound; a probe
        outside does not see it.
        """
        found = self.free_units + self.live_units
        if not self.partition_cpus:
            return found
        whole = (
            len(self.online) * _UNITS_PER_CPU
            if self.expected_units is None
            else self.expected_units
        )
        return (
            found
            - self.partition_live_units
            + whole * len(self.partition_cpus) // len(self.online)
        )

    @property
    def total_units(self) -> int:
        """Return what the kernel admits in total.

        At most the expected sum: when threads end while the root domains are
        rebuilt, the kernel can subtract their bandwidth twice and admits too
        much for a while.
        """
        if self.expected_units is None:
            return self._sum_units
        return min(self._sum_units, self.expected_units)

    @property
    def leaked_units(self) -> int:
        """Return the bandwidth that no thread holds and none can get."""
        if self.expected_units is None:
            return 0
        lost_units = self.expected_units - self.total_units
        return lost_units if lost_units >= _SEEN_UNITS else 0

    @property
    def balanced(self) -> bool:
        """Whether no bandwidth is leaked or counted twice."""
        return (
            self.expected_units is None
            or -self.fair_units
            <= self.expected_units - self._sum_units
            < _SEEN_UNITS
        )

    @property
    def leaked_mcpu(self) -> int:
        """Return the leak in milli-CPU, rounded to the nearest."""
        return round(
            Fraction(
                self.leaked_units * reservation.MCPU_PER_CPU, _UNITS_PER_CPU
            )
        )


class KernelCapacity:
    """The host's capacity, measured once and after changes.

    What the kernel admits in total does not depend on what is reserved, so
    vsched's own reservations require no new measurement.

    :param reserve_mcpu: milli-CPU kept for the host.
    :param probe: returns what the kernel still admits, see
        :func:`vsched_agent.privileged.sched.probe_free_bandwidth`.
    :param root: root of the file system; tests use their own.
    """

    def __init__(
        self,
        reserve_mcpu: int = 0,
        probe: Callable[[int], int] | None = None,
        root: str = '/',
    ) -> None:
        self._reserve_mcpu = reserve_mcpu
        self._probe = probe or sched.probe_free_bandwidth
        self._root = root
        self._cgroups = cgroup.Cgroups(root)
        self._lock = threading.Lock()
        self._measured: Measured | None = None
        self._facts: kernel.KernelFacts | None = None

    def current(self) -> host.Capacity:
        """Return what the host can reserve.

        Cheap while the online CPUs do not change and nothing was invalidated.
        Zero when the kernel cannot be probed.
        """
        measured = self.measured()
        return host.Capacity(
            cpus=max(1, len(measured.online)),
            admissible=Fraction(measured.total_units, _UNITS_PER_CPU),
            reserve_mcpu=self._reserve_mcpu,
        )

    def invalidate(self) -> None:
        """Measure again at the next call."""
        with self._lock:
            self._measured = None

    def measured(self) -> Measured:
        """Return the measurement behind :meth:`current`."""
        online = cpu_list.online(self._root)
        with self._lock:
            if self._measured is None or self._measured.online != online:
                self._measured = self._measure(online)
            return self._measured

    def _measure(self, online: frozenset[int]) -> Measured:
        try:
            # Reading the bound makes newer kernels recompute the sums, which
            # would hide a leak, and miscounts threads that are leaving. So it
            # is read only when the sums do not balance.
            first = self._sample(online)
            if self._facts is not None and self._facts.online == online:
                first = self._with_bound(first)
                give_up_s = time.monotonic() + _PENDING_S
                while not first.balanced and time.monotonic() < give_up_s:
                    # The bandwidth of a thread that has just ended is free at
                    # its 0-lag time. A recount before that subtracts it twice.
                    time.sleep(_SETTLE_S)
                    first = self._with_bound(self._sample(online))
                if first.balanced:
                    return first
            self._facts = kernel.KernelFacts.read(self._root)
            measured = self._with_bound(first)
            if not measured.balanced:
                measured = dataclasses.replace(
                    self._with_bound(self._sample(online)),
                    recovered_units=measured.leaked_units,
                )
        except OSError as failure:
            LOG.warning(
                'the free deadline bandwidth cannot be probed: %s', failure
            )
            return Measured(online, 0, 0, None)
        if measured.recovered_units > measured.leaked_units:
            LOG.warning(
                '%d units of deadline bandwidth were held by no thread; the '
                'kernel has recovered %d of them',
                measured.recovered_units,
                measured.recovered_units - measured.leaked_units,
            )
        measured = dataclasses.replace(
            measured,
            recovered_units=max(
                0, measured.recovered_units - measured.leaked_units
            ),
        )
        if measured.leaked_units:
            LOG.warning(
                '%d mcpu of deadline bandwidth are held by no thread: the '
                'kernel admits %d of %d units',
                measured.leaked_mcpu,
                measured.total_units,
                measured.expected_units or 0,
            )
        return measured

    def _with_bound(self, sample: Measured) -> Measured:
        facts = self._facts
        if facts is None:
            return dataclasses.replace(sample, expected_units=None)
        return dataclasses.replace(
            sample,
            expected_units=facts.expected_units,
            fair_units=facts.fair_units,
        )

    def _sample(self, online: frozenset[int]) -> Measured:
        cpus = self._cgroups.unpartitioned_cpus()
        apart = online - cpus if cpus else frozenset()
        most = (len(online) - len(apart)) * _UNITS_PER_CPU
        # A thread that starts or ends between two reads would be counted twice
        # or not at all: repeat until nothing changed.
        for _ in range(_TRIES):
            held = deadline_threads(self._root)
            live = _units(held)
            live_apart = _units(_only_on(held, apart)) if apart else 0
            free = self._probe(max(0, most - live + live_apart))
            if live == _units(deadline_threads(self._root)):
                break
        return Measured(
            online,
            free,
            live,
            None,
            partition_cpus=apart,
            partition_live_units=live_apart,
        )


_TRIES = 5
#: Between two samples that do not balance yet, in seconds.
_SETTLE_S = 0.05
#: For this long bandwidth without a thread may belong to threads that have
#: ended. A thread that overran its budget by a tick has debt for at most a
#: second, see ``Reservation.worst_debt_us``; its deadline is up to two periods
#: away.
_PENDING_S = 1.5


def _only_on(
    held: Iterable[DeadlineThread], cpus: frozenset[int]
) -> Iterator[DeadlineThread]:
    """Yield the threads that may use these CPUs only."""
    for thread in held:
        try:
            if frozenset(os.sched_getaffinity(thread.tid)) <= cpus:
                yield thread
        except ProcessLookupError:
            continue


def _units(threads: ty.Iterable[DeadlineThread]) -> int:
    return sum(thread.units for thread in threads)
