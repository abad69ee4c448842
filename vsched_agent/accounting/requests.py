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

"""Requests of instances' disks, as the hypervisor counts them.

No file of the kernel has them: QEMU's disks may be files, or lie on a
network. To ask costs much more than all other readings together, most of it
in the instance's own process, so only those are asked about whose host
threads woke up often since, and the others now and then. A thread of its own
asks, and the loop takes what has come: a sample holds the requests up to the
pass before it.
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

LOG = logging.getLogger(__name__)

#: An instance's host threads that woke up so often may have moved blocks; a
#: question wakes them up a few times by itself.
WAKEUPS = 1000
#: Longest time without a question, in seconds.
QUIET_S = 10.0

Counters = Mapping[str, Mapping[str, base.DiskCounters]]


class Requests(ty.NamedTuple):
    """Requests that an instance's disks completed."""

    reads: int
    writes: int


class PatientAsker:
    """Asks for counters and waits for them.

    :param ask: see :meth:`base.Hypervisor.disk_counters`.
    """

    def __init__(self, ask: Callable[[Collection[str]], Counters]) -> None:
        self._ask = ask
        self._answers: dict[str, Mapping[str, base.DiskCounters]] = {}
        self._failed = False

    def want(self, uuids: Collection[str]) -> None:
        """Ask about these."""
        self._answers.update(self._answer(uuids))

    def take(self) -> Counters:
        """The answers since the last call."""
        answers, self._answers = self._answers, {}
        return answers

    def close(self) -> None:
        """Nothing goes on."""

    def _answer(self, uuids: Collection[str]) -> Counters:
        try:
            answers = self._ask(uuids)
        except Exception as problem:
            if not isinstance(problem, base.HypervisorUnavailable):
                LOG.exception('disks could not be counted')
            elif not self._failed:
                LOG.warning('disks are not counted for now: %s', problem)
            self._failed = True
            return {}
        if self._failed:
            LOG.info('disks are counted again')
            self._failed = False
        return answers


class Asker(PatientAsker):
    """Asks from a thread of its own, so that nobody waits."""

    def __init__(self, ask: Callable[[Collection[str]], Counters]) -> None:
        super().__init__(ask)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._wanted: set[str] = set()
        self._thread: threading.Thread | None = None

    def want(self, uuids: Collection[str]) -> None:
        with self._lock:
            self._wanted.update(uuids)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name='vsched-disk-counters', daemon=True)
            self._thread.start()
        self._wake.set()

    def take(self) -> Counters:
        with self._lock:
            return super().take()

    def close(self) -> None:
        # A call that hangs has a limit of its own.
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
                wanted, self._wanted = self._wanted, set()
            answers = self._answer(wanted)
            with self._lock:
                self._answers.update(answers)


class RequestMeter:
    """Tells how many requests disks completed between two passes.

    Used by one thread at a time.

    :param asker: gets the counters.
    :param quiet_s: longest time without a question.
    """

    def __init__(self, asker: PatientAsker,
                 quiet_s: float = QUIET_S) -> None:
        self._asker = asker
        self._quiet_s = quiet_s
        self._last: dict[str, Mapping[str, base.DiskCounters]] = {}
        self._asked_s: dict[str, float] = {}
        self._wakeups: dict[str, int] = {}

    def moved(self, domains: Iterable[base.Domain],
              wakeups: Mapping[str, int]) -> dict[str, Requests]:
        """Requests since the last call, by instance.

        A disk that is seen for the first time is only read. A counter that
        steps back is another disk's, and counts from there.

        :param wakeups: how often each instance's host threads woke up
            since the last call.
        :returns: those of which there is news.
        """
        now_s = time.monotonic()
        with_disks = {one.uuid for one in domains if one.disks}
        for past in (self._last, self._asked_s, self._wakeups):
            for uuid in past.keys() - with_disks:
                del past[uuid]
        wanted = set()
        for uuid in with_disks:
            woken = self._wakeups.get(uuid, 0) + wakeups.get(uuid, 0)
            if (woken >= WAKEUPS or
                    now_s - self._asked_s.get(uuid, 0.0) >= self._quiet_s):
                wanted.add(uuid)
                self._asked_s[uuid] = now_s
                woken = 0
            self._wakeups[uuid] = woken
        if wanted:
            self._asker.want(wanted)
        found = {}
        for uuid, disks in self._asker.take().items():
            if uuid in with_disks:
                before, self._last[uuid] = self._last.get(uuid), disks
                if before is not None:
                    found[uuid] = _grown(before, disks)
        return found

    def close(self) -> None:
        """Ask no more."""
        self._asker.close()


def _grown(before: Mapping[str, base.DiskCounters],
           now: Mapping[str, base.DiskCounters]) -> Requests:
    pairs = [(before[disk], after) for disk, after in now.items()
             if disk in before]
    return Requests(
        sum(counters.grown(one.reads, two.reads) for one, two in pairs),
        sum(counters.grown(one.writes, two.writes) for one, two in pairs))
