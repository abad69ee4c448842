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

"""Threads that share a CPU take turns more often than at the kernel's tick.

A fair thread keeps its CPU until a tick finds its slice used up, with 250
ticks a second for 4 ms and more. Each time that a thread under SCHED_FIFO
passes by, the CPU picks anew whose turn it is (sched(7); ``put_prev_task``
and ``pick_next_task`` in kernel/sched/core.c). Nobody's parameters change and
nobody's share does, and with this thread nothing stays behind.

A helper of its own: it has to be there in time, and what the scheduling
helper does must not wait for it.
"""

from collections.abc import Iterable
from concurrent import futures
import contextlib
import itertools
import os
import threading
import time

from oslo_privsep import capabilities

from vsched_agent.privileged import context

turns_pctxt = context.Context(
    'turns_pctxt', __name__, 'vsched_turns_privileged',
    [capabilities.CAP_SYS_NICE])

#: As many threads are followed at once; more are left to the tick.
MOST = 256
#: Nobody wants that for longer, in seconds: see guest_timeout in
#: [ballooning].
LONGEST_S = 120.0
#: Who passes by runs for this part of the time at the most.
PART = 5

_PRIORITY = 1
_ROOM = 1024
#: The CPU that a thread was last on, among the fields of /proc/TID/stat
#: behind the name; proc(5) counts from 1 and has two before these.
_CPU_FIELD = 39 - 3
_US_PER_S = 1_000_000
_NS_PER_S = 1_000_000_000


class Follower:
    """Knows on which CPU a thread is. Not thread-safe.

    :param tid: the thread.
    :raises OSError: when it is gone.
    """

    def __init__(self, tid: int) -> None:
        self._file = os.open('/proc/%d/stat' % tid, os.O_RDONLY)

    def cpu(self) -> int:
        """Where it runs, or waits.

        :raises OSError: when it is gone.
        """
        text = os.pread(self._file, _ROOM, 0)
        return int(text[text.rindex(b')') + 2:].split()[_CPU_FIELD])

    def close(self) -> None:
        """Follow it no longer."""
        os.close(self._file)


class Turner:
    """A thread that passes by, and lives while somebody wants that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names = itertools.count(1)
        #: By name, until when, how often and where.
        self._wanted: dict[int, tuple[float, float, list[Follower]]] = {}
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether anybody passes by."""
        with self._lock:
            return self._thread is not None

    def begin(self, tids: Iterable[int], turn_us: int,
              limit_s: float) -> int:
        """Pass by where these threads are.

        :param tids: those that are gone are left out.
        :param turn_us: so often; the shortest of all that are wanted holds.
        :param limit_s: ends by itself after so many seconds,
            :data:`LONGEST_S` at the most.
        :returns: a name for :meth:`end`.
        :raises OSError: when the kernel does not let anybody pass by.
        """
        followers: list[Follower] = []
        for tid in itertools.islice(tids, MOST):
            with contextlib.suppress(OSError):
                followers.append(Follower(tid))
        with self._lock:
            name = next(self._names)
            self._wanted[name] = (
                time.monotonic() + min(limit_s, LONGEST_S),
                turn_us / _US_PER_S, followers)
            try:
                self._start()
            except BaseException:
                self._drop(name)
                raise
        return name

    def _start(self) -> None:
        if self._thread is not None:
            return
        entered: futures.Future[None] = futures.Future()
        thread = threading.Thread(
            target=self._run, args=(entered,), name='turns', daemon=True)
        thread.start()
        entered.result()
        self._thread = thread

    def end(self, name: int) -> None:
        """Leave them to the tick again; once more does no harm."""
        with self._lock:
            self._drop(name)

    def stop(self) -> None:
        """Leave all to the tick."""
        with self._lock:
            for name in list(self._wanted):
                self._drop(name)
            thread = self._thread
        if thread is not None:
            thread.join()

    def _drop(self, name: int) -> None:
        _, _, followers = self._wanted.pop(name, (0.0, 0.0, []))
        for one in followers:
            one.close()

    def _run(self, entered: 'futures.Future[None]') -> None:
        try:
            os.sched_setscheduler(
                0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        except OSError as failure:
            entered.set_exception(failure)
            return
        entered.set_result(None)
        while True:
            began_ns = time.thread_time_ns()
            turn_s = self._pass_by()
            if turn_s is None:
                return
            spent_s = (time.thread_time_ns() - began_ns) / _NS_PER_S
            time.sleep(max(turn_s, (PART - 1) * spent_s))

    def _pass_by(self) -> float | None:
        """Once on each CPU.

        :returns: seconds until the next time; None when there is none.
        """
        with self._lock:
            now_s = time.monotonic()
            for name, (until_s, _, _) in list(self._wanted.items()):
                if now_s >= until_s:
                    self._drop(name)
            if not self._wanted:
                # Whoever begins after this starts another thread.
                self._thread = None
                return None
            cpus = {cpu for _, _, followers in self._wanted.values()
                    for cpu in _cpus(followers)}
            turn_s = min(every_s for _, every_s, _ in self._wanted.values())
        for cpu in cpus:
            # One that this process may not use is left to the tick.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {cpu})
        return turn_s


def _cpus(followers: list[Follower]) -> set[int]:
    found = set()
    for one in list(followers):
        try:
            found.add(one.cpu())
        except (OSError, ValueError):
            one.close()
            followers.remove(one)
    return found


_turner = Turner()


@turns_pctxt.entrypoint
def ready() -> None:
    """Have the helper started, which takes a while."""


@turns_pctxt.entrypoint
def begin(tids: Iterable[int], turn_us: int, limit_s: float) -> int:
    """See :meth:`Turner.begin`."""
    return _turner.begin(tids, turn_us, limit_s)


@turns_pctxt.entrypoint
def end(name: int) -> None:
    """See :meth:`Turner.end`."""
    _turner.end(name)
