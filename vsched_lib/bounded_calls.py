# SPDX-License-Identifier: Apache-2.0

"""Calls that may never return, made so that they block nobody else.

A call into libvirt lasts as long as the daemon or a monitor likes, and one on
the bus connects to a broker for as long as that is away. Each is made by a
thread of a pool, and the caller waits for it no longer than it can afford. A
call that did not return in time keeps its thread; until it returns, no second
one is made for the same key, so that one dead monitor costs one thread and
not one more at every attempt.
"""

import collections
from collections.abc import Callable
from collections.abc import Hashable
import itertools
import threading
import time
import typing as ty

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')

#: A thread that has had nothing to do for so long ends, in seconds.
IDLE_S = 10.0


class CallTimedOut(Exception):
    """A call did not return in time, or an earlier one still has not."""


class _Job:
    def __init__(self, key: Hashable, function: Callable[[], ty.Any]) -> None:
        self.key = key
        self.function = function
        self.done = threading.Event()
        self.abandoned = False
        self.result: ty.Any = None
        self.error: BaseException | None = None


class BoundedCalls:
    """A pool of threads for calls with a time limit.

    Threads are started when calls need them, and end by themselves. To be
    used on one side of a fork only.

    :param name: prefix of the threads' names.
    :param limit: threads at most, those that hang included.
    """

    def __init__(self, name: str, limit: int = 32) -> None:
        self._name = name
        self._limit = limit
        self._lock = threading.Lock()
        #: There is a job, or no more of them.
        self._changed = threading.Condition(self._lock)
        self._jobs: collections.deque[_Job] = collections.deque()
        self._threads: list[threading.Thread] = []
        self._numbers = itertools.count(1)
        self._idle = 0
        self._overdue: dict[Hashable, int] = {}
        self._closed = False

    @property
    def overdue(self) -> frozenset[Hashable]:
        """The keys of calls that should have returned and have not."""
        with self._lock:
            return frozenset(self._overdue)

    def run(
        self, key: Hashable, timeout_s: float, function: Callable[[], T]
    ) -> T:
        """Make a call and wait for its result.

        :param key: what would block it, for instance a domain.
        :param timeout_s: seconds to wait at most.
        :param function: the call.
        :returns: its result; its exceptions are raised here.
        :raises CallTimedOut: at once when a call of the same key is overdue
            or every thread hangs, else after the time.
        """
        job = _Job(key, function)
        with self._lock:
            if self._closed:
                raise CallTimedOut('stopped')
            if key in self._overdue:
                raise CallTimedOut('an earlier call has not returned yet')
            if sum(self._overdue.values()) >= self._limit:
                raise CallTimedOut(
                    'all %d threads wait for calls that do not return'
                    % (self._limit)
                )
            self._jobs.append(job)
            if len(self._jobs) > self._idle and (
                len(self._threads) < self._limit
            ):
                # A hanging call must not keep the process from ending.
                thread = threading.Thread(
                    target=self._work,
                    daemon=True,
                    name='%s-%d' % (self._name, next(self._numbers)),
                )
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        if not job.done.wait(timeout_s):
            with self._lock:
                if not job.done.is_set():
                    job.abandoned = True
                    self._overdue[key] = self._overdue.get(key, 0) + 1
            if job.abandoned:
                raise CallTimedOut('no answer within %.3g s' % timeout_s)
        if job.error is not None:
            raise job.error
        return ty.cast(T, job.result)

    def close(self, timeout_s: float = 1.0) -> None:
        """Let the threads go; one that hangs goes when its call returns.

        :param timeout_s: seconds to wait for calls that are under way.
        """
        with self._lock:
            self._closed = True
            threads = list(self._threads)
            self._changed.notify_all()
        limit_s = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(0.0, limit_s - time.monotonic()))

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job.result = job.function()
            except BaseException as error:
                # It belongs to whoever waits for the call.
                job.error = error
            with self._lock:
                job.done.set()
                if job.abandoned:
                    self._forget(job.key)
                    LOG.info('a call for %s has returned late', job.key)

    def _next(self) -> _Job | None:
        """Wait for a job; None when this thread is to end."""
        with self._lock:
            self._idle += 1
            self._changed.wait_for(lambda: self._jobs or self._closed, IDLE_S)
            self._idle -= 1
            if self._jobs:
                return self._jobs.popleft()
            self._threads.remove(threading.current_thread())
            return None

    def _forget(self, key: Hashable) -> None:
        self._overdue[key] -= 1
        if not self._overdue[key]:
            del self._overdue[key]
