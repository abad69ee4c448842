# SPDX-License-Identifier: Apache-2.0

"""Detect vCPUs of an instance that wait for each other's CPU time.

A vCPU that was descheduled while it holds a lock, or has to handle an
interrupt of another, makes the others wait. Seen from outside: vCPUs
are runnable and do not run, or yield to another one that they have
interrupted and that does not run (directed yields). A vCPU that spins for a
lock is not seen: KVM does not count pause-loop exits.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class VcpuUse:
    """What one vCPU did in an interval.

    :param run_ns: time that it ran.
    :param wait_ns: time that it was runnable and did not run.
    :param timeslices: how often it began to run.
    :param yields: how often it asked KVM to yield its CPU to another vCPU of
        the instance; None where KVM does not report it.
    """

    run_ns: int
    wait_ns: int
    timeslices: int = 0
    yields: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Thresholds:
    """Above which a vCPU counts as contended.

    :param wait_share: of the time that it is runnable, the part it waits.
    :param yields_per_timeslice: more attempts to yield than this.
    :param busy_share: of the interval; one that is runnable for less is
        idle, and idle vCPUs are not contended.
    :param samples: number of samples that are evaluated together.
    """

    wait_share: float = 0.3
    yields_per_timeslice: float = 10.0
    busy_share: float = 0.1
    samples: int = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """What an instance did over some time, each figure per second.

    :param run: CPUs that it used.
    :param wait: CPUs that it waited for.
    :param yields: attempts to yield; None where KVM does not report them.
    :param progress: of the tenant's own counter; None without one.
    """

    run: float
    wait: float
    yields: float | None = None
    progress: float | None = None

    @property
    def runnable(self) -> float:
        """CPUs that it could have used."""
        return self.run + self.wait

    @property
    def wait_share(self) -> float:
        """Of the time that its vCPUs are runnable, the part they wait."""
        return self.wait / self.runnable if self.runnable else 0.0


class Window:
    """The last few samples of one instance.

    :param samples: how many.
    """

    def __init__(self, samples: int) -> None:
        self._samples: collections.deque[tuple[int, Mapping[int, VcpuUse]]] = (
            collections.deque(maxlen=samples)
        )

    def add(self, interval_ns: int, uses: Mapping[int, VcpuUse]) -> None:
        """Add a sample, by index of the vCPU.

        A sample of other vCPUs than before starts a new window.
        """
        if self._samples and self._samples[-1][1].keys() != uses.keys():
            self._samples.clear()
        if interval_ns > 0:
            self._samples.append((interval_ns, uses))

    def clear(self) -> None:
        """Discard all samples."""
        self._samples.clear()

    @property
    def full(self) -> bool:
        """Whether the window has all its samples."""
        return len(self._samples) == self._samples.maxlen

    @property
    def interval_ns(self) -> int:
        """Total length of the samples."""
        return sum(interval_ns for interval_ns, _ in self._samples)

    def vcpus(self) -> dict[int, VcpuUse]:
        """Return the sums over all samples by vCPU."""
        if not self._samples:
            return {}
        return {
            index: _sum(uses[index] for _, uses in self._samples)
            for index in self._samples[-1][1]
        }

    def work(self) -> Work:
        """Return the sum over all samples and vCPUs, per second."""
        interval_ns, whole = self.interval_ns, _sum(self.vcpus().values())
        if not interval_ns:
            return Work(0.0, 0.0)
        return Work(
            whole.run_ns / interval_ns,
            whole.wait_ns / interval_ns,
            None if whole.yields is None else whole.yields * 1e9 / interval_ns,
        )


def _sum(uses: Iterable[VcpuUse]) -> VcpuUse:
    run_ns = wait_ns = timeslices = 0
    yields: int | None = None
    for one in uses:
        run_ns += one.run_ns
        wait_ns += one.wait_ns
        timeslices += one.timeslices
        if one.yields is not None:
            yields = (yields or 0) + one.yields
    return VcpuUse(run_ns, wait_ns, timeslices, yields)


def contended_vcpus(window: Window, thresholds: Thresholds) -> frozenset[int]:
    """Return the vCPUs that wait or yield above the thresholds."""
    least_ns = thresholds.busy_share * window.interval_ns
    return frozenset(
        index
        for index, use in window.vcpus().items()
        if use.run_ns + use.wait_ns >= least_ns and _above(use, thresholds)
    )


def _above(use: VcpuUse, thresholds: Thresholds) -> bool:
    if use.yields is not None and use.yields > (
        thresholds.yields_per_timeslice * use.timeslices
    ):
        return True
    return use.wait_ns > thresholds.wait_share * (use.run_ns + use.wait_ns)


def contended(window: Window, thresholds: Thresholds) -> bool:
    """Return whether more than half of an instance's vCPUs are contended.

    Never with a single vCPU, which has no other to wait for.
    """
    vcpus = len(window.vcpus())
    return (
        window.full
        and vcpus > 1
        and 2 * len(contended_vcpus(window, thresholds)) > vcpus
    )


def overcommitted(works: Iterable[Work], cpus: int) -> bool:
    """Return whether more vCPUs are runnable than there are CPUs."""
    return sum(work.runnable for work in works) > cpus
