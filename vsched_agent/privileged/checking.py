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

"""A thread that looks at budgets when they end.

See :mod:`vsched_agent.privileged.looking`.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from concurrent import futures
import os
import threading
import time

from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import looking
from vsched_agent.privileged import syscalls

#: The checker runs for this part of the time at the most.
PART = 10
#: Its period in intervals. A look takes 50 to 200 us when nothing is in the
#: caches, and should not be stopped half-way; nor must threads of short
#: periods be more urgent.
INTERVALS = 2
#: What it may run at once when it has not run for long: looks at many
#: threads whose budgets end together.
BURST_NS = 2_000_000
#: How long a checker without threads stays, in seconds: those that are
#: changed are gone for a moment only.
LINGER_S = 0.1

_NS_PER_US = 1_000
_NS_PER_S = 1_000_000_000


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
        self._watched = looking.Watched()
        self._check_us = 0
        self._thread: threading.Thread | None = None
        self._looking = False
        self._end = threading.Event()

    def watch(self, requests: Iterable[entering.Request], check_us: int,
              events: Mapping[int, int]) -> None:
        """Look at threads from now on.

        :param requests: what they were given.
        :param check_us: how soon after its end a budget is looked at; the
            last word holds for all threads.
        :param events: by thread, a descriptor for its alarm; whose are
            closed that are not looked at.
        :raises OSError: EBUSY when the kernel has no bandwidth left for the
            checker; nothing is looked at then.
        """
        left = dict(events)
        with self._turn:
            if check_us != self._check_us:
                self._stop_thread()
                self._check_us = check_us
            with self._lock:
                for request in requests:
                    self._watched.add(request, left.pop(request.tid, None))
                for event in left.values():
                    os.close(event)
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
        check_ns = check_us * _NS_PER_US
        check_s = check_ns / _NS_PER_S
        pace = Pace(time.thread_time_ns())
        due_s = busy_s = time.monotonic()
        rest_s = idle_s = 0.0
        while not (self._end.wait(rest_s) if rest_s else self._end.is_set()):
            rung = self._watched.alarms.wait(idle_s)
            with self._lock:
                self._watched.due(self._watched.alarms.whose(rung))
                now_s = time.monotonic()
                if now_s >= due_s:
                    self._watched.due(self._watched.silent)
                    due_s = max(due_s + check_s, now_s)
                more = self._watched.look(
                    time.thread_time_ns() + check_ns, check_ns)
                rest_s = pace.rest_s(time.thread_time_ns(), now_s)
                idle_s = 0.0 if more else LINGER_S
                if self._watched.silent:
                    idle_s = min(idle_s, due_s - now_s)
                if self._watched:
                    busy_s = now_s
                elif now_s - busy_s > LINGER_S:
                    self._looking = False
                    return


class Pace:
    """Who keeps to it runs for a :data:`PART` of the time at the most.

    The kernel sees to it as well, but stops who overdraws at a tick and then
    for ten; and it lets a thread have more while the class is not full.

    :param ran_ns: the thread's CPU time now.
    """

    def __init__(self, ran_ns: int) -> None:
        self._ran_ns = ran_ns
        #: Until then all of it is paid.
        self._paid_s = 0.0

    def rest_s(self, ran_ns: int, now_s: float) -> float:
        """How long to rest.

        :param ran_ns: the thread's CPU time.
        :param now_s: the steady clock.
        """
        self._paid_s = max(self._paid_s, now_s) + (
            ran_ns - self._ran_ns) * PART / _NS_PER_S
        self._ran_ns = ran_ns
        return max(0.0, self._paid_s - now_s - BURST_NS * PART / _NS_PER_S)


def request(tid: int, check_us: int) -> entering.Request:
    """What the checker's own thread holds.

    :param tid: the thread.
    :param check_us: see :meth:`Checker.watch`.
    """
    period_ns = INTERVALS * check_us * _NS_PER_US
    # It may have what nobody was promised: stopped half-way through a look
    # it would come a period late.
    return entering.Request(
        tid, period_ns // PART, period_ns, syscalls.FLAG_RECLAIM)


def _enter(tid: int, check_us: int) -> None:
    # The class takes threads only that may use every CPU.
    os.sched_setaffinity(tid, range(os.sysconf('SC_NPROCESSORS_CONF')))
    with leaving.exclusive:
        failure = entering.enter([request(tid, check_us)])
    if failure is not None:
        raise OSError(failure.errno, os.strerror(failure.errno))
