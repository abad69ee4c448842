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

"""Looks at the budgets of deadline threads between the kernel's ticks.

Without HRTICK_DL the kernel sees only at a tick that a budget is used up,
and a promise of 1 ms may run for 4. Whoever sets a running thread's
parameters makes it look at once (kernel/sched/deadline.c: ``dequeue_task_dl``
accounts and throttles). The same parameters again are no change and nothing
is looked at, so each look changes them by a nanosecond, forth and back.
Both have the same bandwidth in the kernel's books: nothing can be refused,
and what is admissible stays what it was.

Nothing tells the kernel to change parameters only if they are such, so a
thread is read, compared and set in two calls that nobody of this process
comes between. Others must have it forgotten before they change it.
"""

from collections.abc import Iterable
from concurrent import futures
import contextlib
import os
import threading
import time

from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls

#: The checker runs for this part of its period at the most.
PART = 10
#: How long a checker without threads stays, in seconds: those that are
#: changed are gone for a moment only.
LINGER_S = 0.1

_NS_PER_US = 1_000
_NS_PER_S = 1_000_000_000
#: The kernel takes no runtime below that.
_LEAST_NS = 1_024


def alternate(attr: syscalls.Attr) -> syscalls.Attr | None:
    """Parameters next to these, with the same bandwidth.

    :param attr: of a thread under SCHED_DEADLINE.
    :returns: a nanosecond more or less of runtime. Of a period below 2.1
        ms that may be too much, then of the period. None when that is too
        much as well: of more than 0.47 of a period of 1 ms, of more than
        0.23 of half of that, and so on; and of a whole CPU, which has no
        budget to end.
    """
    units = syscalls.kernel_bandwidth(attr.runtime_ns, attr.period_ns)
    for more_ns, longer_ns in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        runtime_ns = attr.runtime_ns + more_ns
        period_ns = attr.period_ns + longer_ns
        if _LEAST_NS <= runtime_ns <= period_ns and units == (
                syscalls.kernel_bandwidth(runtime_ns, period_ns)):
            return attr._replace(
                runtime_ns=runtime_ns, deadline_ns=period_ns,
                period_ns=period_ns)
    return None


class Watched:
    """The threads whose budgets are looked at. Not thread-safe."""

    def __init__(self) -> None:
        #: By thread, what it shall have and what it has every other time.
        self._threads: dict[int, tuple[
            entering.Request, syscalls.Attr, syscalls.Attr]] = {}
        self._next: list[int] = []

    def __len__(self) -> int:
        return len(self._threads)

    def add(self, request: entering.Request) -> None:
        """Look at a thread; one without an :func:`alternate` is passed over.

        :param request: what it was given.
        """
        other = alternate(request.attr)
        if other is not None:
            self._threads[request.tid] = request, request.attr, other

    def forget(self, tid: int) -> entering.Request | None:
        """Leave a thread with exactly what it shall have.

        :returns: that; None when it was not looked at.
        """
        if tid not in self._threads:
            return None
        request, wanted, other = self._threads.pop(tid)
        with contextlib.suppress(OSError):
            if syscalls.get_attr(tid) == other:
                syscalls.set_attr(tid, wanted)
        return request

    def forget_all(self) -> None:
        """Leave all threads."""
        for tid in list(self._threads):
            self.forget(tid)

    def look(self, until_ns: int) -> None:
        """Look at each thread once, the next time at those not yet seen.

        :param until_ns: of the caller's own CPU time, when to stop.
        """
        for _ in range(len(self._threads)):
            if not self._next:
                self._next = list(self._threads)
            self._look(self._next.pop())
            if time.thread_time_ns() >= until_ns:
                break

    def _look(self, tid: int) -> None:
        if tid not in self._threads:
            return
        _, wanted, other = self._threads[tid]
        try:
            found = syscalls.get_attr(tid)
            if found == wanted:
                syscalls.set_attr(tid, other)
            elif found == other:
                syscalls.set_attr(tid, wanted)
            else:
                # Somebody else has changed it, and knows why.
                del self._threads[tid]
        except OSError:
            # It is gone, or it is pinned: then the kernel takes no change.
            del self._threads[tid]


class Checker:
    """A thread that looks, itself under SCHED_DEADLINE while it lives.

    It lives while there is something to look at.
    """

    def __init__(self) -> None:
        #: Of who starts and stops the thread.
        self._turn = threading.Lock()
        #: Held while threads are looked at, so that they are left alone
        #: from the moment on that they are forgotten.
        self._lock = threading.Lock()
        self._watched = Watched()
        self._check_us = 0
        self._thread: threading.Thread | None = None
        self._looking = False
        self._end = threading.Event()

    def watch(self, requests: Iterable[entering.Request],
              check_us: int) -> None:
        """Look at threads from now on.

        :param requests: what they were given.
        :param check_us: how often; the last word holds for all threads.
        :raises OSError: EBUSY when the kernel has no bandwidth left for the
            checker; nothing is looked at then.
        """
        with self._turn:
            if check_us != self._check_us:
                self._stop_thread()
                self._check_us = check_us
            with self._lock:
                for request in requests:
                    self._watched.add(request)
                wanted = bool(self._watched) and not self._looking
            if wanted:
                try:
                    self._start_thread()
                except BaseException:
                    self._forget_all()
                    raise

    def forget(self, tids: Iterable[int]) -> list[entering.Request]:
        """Look at threads no longer.

        They have exactly what was asked for when this returns, and are not
        touched any more.

        :returns: what was asked for those that were looked at.
        """
        with self._lock:
            found = [self._watched.forget(tid) for tid in tids]
        return [request for request in found if request is not None]

    def stop(self) -> None:
        """Forget all; returns when the bandwidth is free again."""
        with self._turn:
            self._forget_all()
            self._stop_thread()

    def _forget_all(self) -> None:
        with self._lock:
            self._watched.forget_all()

    def _start_thread(self) -> None:
        # One that has just ended may still be on its way out of the class.
        self._stop_thread()
        self._end.clear()
        entered: futures.Future[None] = futures.Future()
        self._thread = threading.Thread(
            target=self._run, args=(entered, self._check_us),
            name='budgets', daemon=True)
        self._looking = True
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
            self._looking = False
            entered.set_exception(failure)
            return
        entered.set_result(None)
        try:
            self._look(check_us)
        finally:
            self._looking = False
            # It runs, so that what it held is free at its 0-lag time.
            leaving.leave([leaving.Request(tid, before)])

    def _look(self, check_us: int) -> None:
        part_ns = check_us * _NS_PER_US // PART
        check_s = check_us * _NS_PER_US / _NS_PER_S
        due_s = busy_s = time.monotonic()
        spent_ns = time.thread_time_ns()
        while not self._end.is_set():
            with self._lock:
                # One that stops by itself owes nothing; the kernel would
                # stop it at a tick, and then keep it off for ten.
                self._watched.look(spent_ns + part_ns)
                spent_ns = time.thread_time_ns()
                now_s = time.monotonic()
                if self._watched:
                    busy_s = now_s
                elif now_s - busy_s > LINGER_S:
                    self._looking = False
                    return
            due_s += check_s
            if due_s <= now_s:
                due_s = now_s + check_s
            self._end.wait(due_s - now_s)


def _enter(tid: int, check_us: int) -> None:
    # The class takes threads only that may use every CPU.
    os.sched_setaffinity(tid, range(os.sysconf('SC_NPROCESSORS_CONF')))
    period_ns = check_us * _NS_PER_US
    with leaving.exclusive:
        failure = entering.enter([entering.Request(
            tid, period_ns // PART, period_ns)])
    if failure is not None:
        raise OSError(failure.errno, os.strerror(failure.errno))
