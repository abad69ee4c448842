# SPDX-License-Identifier: Apache-2.0

"""Forced preemption of threads that share a CPU, faster than at ticks.

A fair thread keeps its CPU until a tick finds its slice used up: for 4 ms and
more at 250 ticks a second. Each time a thread under SCHED_FIFO runs on a CPU,
the scheduler picks the next thread afterwards (sched(7); ``put_prev_task`` and
``pick_next_task`` in kernel/sched/core.c). Parameters and shares of threads do
not change, and nothing remains when the SCHED_FIFO thread ends.

It is a separate helper: it must run in time, and must not delay the scheduling
helper.
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
from vsched_agent.privileged import ownership

turns_pctxt = context.Context(
    'turns_pctxt',
    __name__,
    'vsched_turns_privileged',
    [capabilities.CAP_SYS_NICE],
)

#: Most threads tracked at once; the others are preempted at ticks only.
MOST = 256
#: Longest duration of a request, in seconds: see guest_timeout in
#: [ballooning].
LONGEST_S = 120.0
#: The preempting thread runs for at most one part in this many.
PART = 5

_PRIORITY = 1
_ROOM = 1024
#: Index of the CPU that a thread was last on, among the fields of
#: /proc/TID/stat behind the name; proc(5) counts from 1 and has two before
#: these.
_CPU_FIELD = 39 - 3
_US_PER_S = 1_000_000
_NS_PER_S = 1_000_000_000


class CpuReader:
    """Reads on which CPU a thread is. Not thread-safe.

    :param tid: the thread.
    :raises OSError: when it has ended.
    """

    def __init__(self, tid: int) -> None:
        self._file = os.open('/proc/%d/stat' % tid, os.O_RDONLY)

    def cpu(self) -> int:
        """Return the CPU on which it runs or waits.

        :raises OSError: when it has ended.
        """
        text = os.pread(self._file, _ROOM, 0)
        return int(text[text.rindex(b')') + 2 :].split()[_CPU_FIELD])

    def close(self) -> None:
        """Close its file."""
        os.close(self._file)


class ForcedPreemption:
    """A preempting thread, which runs while there are requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names = itertools.count(1)
        #: By request: end time, interval and readers of the threads' CPUs.
        self._wanted: dict[int, tuple[float, float, list[CpuReader]]] = {}
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether the preempting thread runs."""
        with self._lock:
            return self._thread is not None

    def begin(
        self, tids: Iterable[int], interval_us: int, limit_s: float
    ) -> int:
        """Preempt the CPUs of these threads.

        :param tids: threads; those that have ended are left out.
        :param interval_us: time between preemptions; the shortest of all
            requests applies.
        :param limit_s: seconds until the request expires, at most
            :data:`LONGEST_S`.
        :returns: the request's name, for :meth:`end`.
        :raises OSError: when the kernel refuses SCHED_FIFO.
        """
        readers: list[CpuReader] = []
        for tid in itertools.islice(tids, MOST):
            with contextlib.suppress(OSError):
                readers.append(CpuReader(tid))
        with self._lock:
            name = next(self._names)
            self._wanted[name] = (
                time.monotonic() + min(limit_s, LONGEST_S),
                interval_us / _US_PER_S,
                readers,
            )
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
            target=self._run, args=(entered,), name='turns', daemon=True
        )
        thread.start()
        entered.result()
        self._thread = thread

    def end(self, name: int) -> None:
        """End a request; unknown names are ignored."""
        with self._lock:
            self._drop(name)

    def stop(self) -> None:
        """End all requests."""
        with self._lock:
            for name in list(self._wanted):
                self._drop(name)
            thread = self._thread
        if thread is not None:
            thread.join()

    def _drop(self, name: int) -> None:
        _, _, readers = self._wanted.pop(name, (0.0, 0.0, []))
        for one in readers:
            one.close()

    def _run(self, entered: 'futures.Future[None]') -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        except OSError as failure:
            entered.set_exception(failure)
            return
        entered.set_result(None)
        while True:
            began_ns = time.thread_time_ns()
            interval_s = self._preempt_once()
            if interval_s is None:
                return
            spent_s = (time.thread_time_ns() - began_ns) / _NS_PER_S
            time.sleep(max(interval_s, (PART - 1) * spent_s))

    def _preempt_once(self) -> float | None:
        """Preempt each CPU once.

        :returns: seconds until the next time; None without requests.
        """
        with self._lock:
            now_s = time.monotonic()
            for name, (until_s, _, _) in list(self._wanted.items()):
                if now_s >= until_s:
                    self._drop(name)
            if not self._wanted:
                # The next request starts another thread.
                self._thread = None
                return None
            cpus = {
                cpu
                for _, _, readers in self._wanted.values()
                for cpu in _cpus(readers)
            }
            interval_s = min(
                every_s for _, every_s, _ in self._wanted.values()
            )
        for cpu in cpus:
            # CPUs that this process may not use are skipped.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {cpu})
        return interval_s


def _cpus(readers: list[CpuReader]) -> set[int]:
    found = set()
    for one in list(readers):
        try:
            found.add(one.cpu())
        except (OSError, ValueError):
            one.close()
            readers.remove(one)
    return found


_preemption = ForcedPreemption()


@turns_pctxt.entrypoint
def ready() -> None:
    """Start the helper ahead of its first use."""


@turns_pctxt.entrypoint
def begin(tids: Iterable[int], interval_us: int, limit_s: float) -> int:
    """See :meth:`ForcedPreemption.begin`; threads of others are left out."""
    wanted = tuple(tids)
    refused = ownership.refusals(wanted)
    return _preemption.begin(
        [tid for tid in wanted if tid not in refused], interval_us, limit_s
    )


@turns_pctxt.entrypoint
def end(name: int) -> None:
    """See :meth:`ForcedPreemption.end`."""
    _preemption.end(name)
