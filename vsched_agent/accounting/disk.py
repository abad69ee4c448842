# SPDX-License-Identifier: Apache-2.0

"""Requests of instances' disks, as the hypervisor counts them.

The kernel does not count them: QEMU's disks may be files or on a network. A
poll costs much more than all other readings together, most of it in the
instance's own process. So instances are polled when their host threads have
woken up often since the last poll, and otherwise rarely. A separate thread
polls; a sample has the requests up to the pass before it.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import counters
from vsched_agent.hypervisor import base
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

#: Wakeups of an instance's host threads after which it is polled. A poll
#: itself wakes them up a few times.
WAKEUPS = 1000
#: Longest time between two polls, in seconds.
QUIET_S = 10.0

Counters = Mapping[str, Mapping[str, base.DiskCounters]]


class Requests(ty.NamedTuple):
    """Requests that an instance's disks completed."""

    reads: int
    writes: int


class BlockingPoller:
    """Polls counters and waits for them.

    :param ask: see :meth:`base.Hypervisor.disk_counters`.
    """

    def __init__(self, ask: Callable[[Collection[str]], Counters]) -> None:
        self._ask = ask
        self._answers: dict[str, Mapping[str, base.DiskCounters]] = {}
        self._failed = False
        self._problems = problem_log.ProblemLog(LOG)

    def request(self, uuids: Collection[str]) -> None:
        """Poll some instances."""
        self._answers.update(self._poll(uuids))

    def take(self) -> Counters:
        """Return the results since the last call."""
        answers, self._answers = self._answers, {}
        return answers

    def close(self) -> None:
        """Do nothing: there is no thread to stop."""

    def _poll(self, uuids: Collection[str]) -> Counters:
        try:
            answers = self._ask(uuids)
        except Exception as problem:
            if not isinstance(problem, base.HypervisorUnavailable):
                self._problems.failed(
                    'disks', problem, 'reading disk counters failed'
                )
            elif not self._failed:
                LOG.warning('disk counters are not available: %s', problem)
            self._failed = True
            return {}
        if self._failed:
            LOG.info('disk counters are available again')
            self._failed = False
        return answers


class BackgroundPoller(BlockingPoller):
    """Polls in a thread of its own, so that the caller does not wait."""

    def __init__(self, ask: Callable[[Collection[str]], Counters]) -> None:
        super().__init__(ask)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._requested: set[str] = set()
        self._thread: threading.Thread | None = None

    def request(self, uuids: Collection[str]) -> None:
        with self._lock:
            self._requested.update(uuids)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name='vsched-disk-counters', daemon=True
            )
            self._thread.start()
        self._wake.set()

    def take(self) -> Counters:
        with self._lock:
            return super().take()

    def close(self) -> None:
        # A call that hangs has its own time limit.
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            with self._lock:
                requested, self._requested = self._requested, set()
            answers = self._poll(requested)
            with self._lock:
                self._answers.update(answers)


class RequestMeter:
    """Measures how many requests disks completed between two passes.

    Used by one thread at a time.

    :param poller: reads the counters.
    :param quiet_s: longest time between two polls.
    """

    def __init__(
        self, poller: BlockingPoller, quiet_s: float = QUIET_S
    ) -> None:
        self._poller = poller
        self._quiet_s = quiet_s
        self._last: dict[str, Mapping[str, base.DiskCounters]] = {}
        self._polled_s: dict[str, float] = {}
        self._wakeups: dict[str, int] = {}

    def moved(
        self, domains: Iterable[base.Domain], wakeups: Mapping[str, int]
    ) -> dict[str, Requests]:
        """Return the requests since the last call, by instance.

        A disk counts from its first reading. A counter that steps back
        belongs to another disk, and counts from there.

        :param wakeups: how often each instance's host threads woke up
            since the last call.
        :returns: the instances with a new result.
        """
        now_s = time.monotonic()
        with_disks = {one.uuid for one in domains if one.disks}
        for past in (self._last, self._polled_s, self._wakeups):
            for uuid in past.keys() - with_disks:
                del past[uuid]
        due = set()
        for uuid in with_disks:
            woken = self._wakeups.get(uuid, 0) + wakeups.get(uuid, 0)
            if (
                woken >= WAKEUPS
                or now_s - self._polled_s.get(uuid, 0.0) >= self._quiet_s
            ):
                due.add(uuid)
                self._polled_s[uuid] = now_s
                woken = 0
            self._wakeups[uuid] = woken
        if due:
            self._poller.request(due)
        found = {}
        for uuid, disks in self._poller.take().items():
            if uuid in with_disks:
                before, self._last[uuid] = self._last.get(uuid), disks
                if before is not None:
                    found[uuid] = _grown(before, disks)
        return found

    def checkpoint(self) -> dict[str, dict[str, list[int]]]:
        """Return the counters of the last call, as JSON types."""
        return {
            uuid: {disk: list(one) for disk, one in disks.items()}
            for uuid, disks in self._last.items()
        }

    def resume(self, checkpoint: Mapping[str, ty.Any]) -> None:
        """Continue from what :meth:`checkpoint` returned.

        :raises ValueError, TypeError, LookupError: when it is malformed.
        """
        resumed: dict[str, Mapping[str, base.DiskCounters]] = {}
        for uuid, disks in checkpoint.items():
            resumed[str(uuid)] = {
                str(disk): base.DiskCounters(int(reads), int(writes))
                for disk, (reads, writes) in disks.items()
            }
        self._last = resumed

    def close(self) -> None:
        """Stop polling."""
        self._poller.close()


def _grown(
    before: Mapping[str, base.DiskCounters],
    now: Mapping[str, base.DiskCounters],
) -> Requests:
    pairs = [
        (before[disk], after) for disk, after in now.items() if disk in before
    ]
    return Requests(
        sum(counters.grown(one.reads, two.reads) for one, two in pairs),
        sum(counters.grown(one.writes, two.writes) for one, two in pairs),
    )
