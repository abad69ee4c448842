# SPDX-License-Identifier: Apache-2.0

"""A thread that checks budgets when they expire.

See :mod:`vsched_agent.privileged.budget_expiry.polling`.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from concurrent import futures
import os
import threading
import time

from vsched_agent.privileged.budget_expiry import polling
from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls

#: The checker's reservation in milli-CPU: per CPU of the host, and its bounds.
#: One thread checks all budgets, so its reservation is bounded.
EACH_MCPU, LEAST_MCPU, MOST_MCPU = 50, 100, 500
#: The checker's period in check intervals. A check with cold caches takes 50
#: to 200 us and should not be throttled halfway, nor preempted by threads with
#: short periods.
INTERVALS = 2
#: What it may run at once after a rest: checks of many threads whose budgets
#: expire together.
BURST_NS = 2_000_000
#: How long a checker without threads stays, in seconds: threads are removed
#: for a moment while they are changed.
LINGER_S = 0.1

#: Name of the checker's thread, as in /proc/PID/task/TID/comm.
COMM = 'vsched-budgets'

_NS_PER_US = 1_000
_NS_PER_S = 1_000_000_000


def reserve_mcpu(cpus: int | None = None) -> int:
    """Return what the checker's thread reserves, in milli-CPU.

    :param cpus: of the host; those online when None.
    """
    if cpus is None:
        cpus = os.sysconf('SC_NPROCESSORS_ONLN')
    return min(MOST_MCPU, max(LEAST_MCPU, EACH_MCPU * cpus))


class Checker:
    """A thread under SCHED_DEADLINE that checks budgets.

    It runs while there are threads to check.
    """

    def __init__(self) -> None:
        #: Serializes starting and stopping the thread.
        self._lifecycle_lock = threading.Lock()
        #: Held while threads are checked, so that no check changes a thread
        #: after :meth:`forget`.
        self._lock = threading.Lock()
        self._watched = polling.Watched()
        self._check_us = 0
        self._thread: threading.Thread | None = None
        self._running = False
        self._rested_s = 0.0
        self._end = threading.Event()

    def watch(
        self,
        requests: Iterable[entering.Request],
        check_us: int,
        events: Mapping[int, int],
    ) -> None:
        """Check threads from now on.

        :param requests: the parameters that were set.
        :param check_us: longest delay of a check after a budget's end; the
            last value applies to all threads.
        :param events: by thread, a descriptor for its alarm; those of threads
            that are not checked are closed.
        :raises OSError: EBUSY when the kernel has no bandwidth left for the
            checker; nothing is checked then.
        """
        left = dict(events)
        with self._lifecycle_lock:
            if check_us != self._check_us:
                self._stop_thread()
                self._check_us = check_us
            with self._lock:
                for request in requests:
                    self._watched.add(request, left.pop(request.tid, None))
                for event in left.values():
                    os.close(event)
                wanted = bool(self._watched) and not self._running
            if wanted:
                try:
                    self._start_thread()
                except BaseException:
                    self._forget_all()
                    raise

    def forget(self, tids: Iterable[int]) -> list[entering.Request]:
        """Stop checking threads.

        When this returns they have exactly the requested parameters and are
        not changed any more.

        :returns: the requests of those that were checked.
        """
        with self._lock:
            found = [self._watched.forget(tid) for tid in tids]
        return [request for request in found if request is not None]

    def set_flags(self, request: entering.Request, flags: int) -> bool:
        """Change a thread's flags between two checks.

        See
        :meth:`vsched_agent.privileged.budget_expiry.polling.Watched.set_flags`.
        """
        with self._lock:
            return self._watched.set_flags(request, flags)

    def report(self) -> dict[str, float]:
        """Return the checker's load.

        :returns: the number of threads ``checked``, and ``rested_s``, the
            seconds so far in which its reservation was used up.
        """
        with self._lock:
            return {'checked': len(self._watched), 'rested_s': self._rested_s}

    def stop(self) -> None:
        """Stop all checks; return when the bandwidth is free again."""
        with self._lifecycle_lock:
            self._forget_all()
            self._stop_thread()

    def _forget_all(self) -> None:
        with self._lock:
            self._watched.forget_all()

    def _start_thread(self) -> None:
        # A thread that has just ended may not have left the class yet.
        self._stop_thread()
        self._end.clear()
        entered: futures.Future[None] = futures.Future()
        self._thread = threading.Thread(
            target=self._run,
            args=(entered, self._check_us),
            name='budgets',
            daemon=True,
        )
        self._running = True
        self._thread.start()
        entered.result()

    def _stop_thread(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, entered: 'futures.Future[None]', check_us: int) -> None:
        tid = threading.get_native_id()
        before = syscalls.get_attr(tid)
        try:
            _enter(tid, check_us)
        except BaseException as failure:
            self._running = False
            entered.set_exception(failure)
            return
        entered.set_result(None)
        try:
            self._check_loop(check_us)
        finally:
            self._running = False
            # It is running, so its bandwidth is free at its 0-lag time.
            leaving.leave([leaving.Request(tid, before)])

    def _check_loop(self, check_us: int) -> None:
        check_ns = check_us * _NS_PER_US
        check_s = check_ns / _NS_PER_S
        pace = Pace(time.thread_time_ns(), reserve_mcpu())
        due_s = busy_s = time.monotonic()
        rest_s = idle_s = 0.0
        while not (self._end.wait(rest_s) if rest_s else self._end.is_set()):
            rung = self._watched.alarms.wait(idle_s)
            with self._lock:
                self._watched.due(self._watched.alarms.threads_of(rung))
                now_s = time.monotonic()
                if now_s >= due_s:
                    self._watched.due(self._watched.silent)
                    due_s = max(due_s + check_s, now_s)
                more = self._watched.check(
                    time.thread_time_ns() + check_ns, check_ns
                )
                rest_s = pace.rest_s(time.thread_time_ns(), now_s)
                self._rested_s += rest_s
                idle_s = 0.0 if more else LINGER_S
                if self._watched.silent:
                    idle_s = min(idle_s, due_s - now_s)
                if self._watched:
                    busy_s = now_s
                elif now_s - busy_s > LINGER_S:
                    self._running = False
                    return


class Pace:
    """Limits a thread to a part of a CPU.

    The kernel throttles at a tick only and then for ten ticks, and lets a
    reclaiming thread exceed its budget while the class is not full.

    :param ran_ns: the thread's CPU time now.
    :param part_mcpu: what it may use, in milli-CPU.
    """

    def __init__(self, ran_ns: int, part_mcpu: int = LEAST_MCPU) -> None:
        self._ran_ns = ran_ns
        self._factor = 1000 / part_mcpu
        #: Until then all CPU time is accounted for.
        self._paid_s = 0.0

    def rest_s(self, ran_ns: int, now_s: float) -> float:
        """Return how long to rest, in seconds.

        :param ran_ns: the thread's CPU time.
        :param now_s: the steady clock.
        """
        self._paid_s = (
            max(self._paid_s, now_s)
            + (ran_ns - self._ran_ns) * self._factor / _NS_PER_S
        )
        self._ran_ns = ran_ns
        return max(
            0.0, self._paid_s - now_s - BURST_NS * self._factor / _NS_PER_S
        )


def request(tid: int, check_us: int) -> entering.Request:
    """Return the reservation of the checker's own thread.

    :param tid: the thread.
    :param check_us: see :meth:`Checker.watch`.
    """
    period_ns = INTERVALS * check_us * _NS_PER_US
    # It reclaims unreserved bandwidth: throttled halfway through a check it
    # would be a period late.
    return entering.Request(
        tid,
        period_ns * reserve_mcpu() // 1000,
        period_ns,
        syscalls.FLAG_RECLAIM,
    )


def _enter(tid: int, check_us: int) -> None:
    entering.enter_self(request(tid, check_us), COMM)
