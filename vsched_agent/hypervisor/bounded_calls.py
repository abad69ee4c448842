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

"""Calls that may never return, made so that they block nobody else.

A call into libvirt lasts as long as the daemon or a monitor likes. Each is
made by a thread of this pool, and the caller waits for it at most as long
as it can afford. A call that did not return in time keeps its thread; until
it returns, no second one is made for the same key, so that one dead monitor
costs one thread and not one more at every look.
"""

from collections.abc import Callable
from collections.abc import Hashable
import queue
import threading
import time
import typing as ty

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')


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

    :param name: prefix of the threads' names.
    :param limit: threads at most, those that hang included.
    """

    def __init__(self, name: str, limit: int = 32) -> None:
        self._name = name
        self._limit = limit
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._overdue: dict[Hashable, int] = {}
        self._closed = False

    @property
    def overdue(self) -> frozenset[Hashable]:
        """The keys of calls that should have returned and have not."""
        with self._lock:
            return frozenset(self._overdue)

    def run(self, key: Hashable, timeout_s: float,
            function: Callable[[], T]) -> T:
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
                    'all %d threads wait for calls that do not return' % (
                        self._limit))
            self._jobs.put(job)
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._limit:
                # A hanging call must not keep the process from ending.
                thread = threading.Thread(
                    target=self._work, daemon=True,
                    name='%s-%d' % (self._name, len(self._threads) + 1))
                self._threads.append(thread)
                thread.start()
        if not job.done.wait(timeout_s):
            with self._lock:
                if not job.done.is_set():
                    job.abandoned = True
                    self._overdue[key] = self._overdue.get(key, 0) + 1
            if job.abandoned:
                raise CallTimedOut('no answer within %.1f s' % timeout_s)
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
            for _ in threads:
                self._jobs.put(None)
        limit_s = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(0.0, limit_s - time.monotonic()))

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
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
                self._idle += 1

    def _forget(self, key: Hashable) -> None:
        self._overdue[key] -= 1
        if not self._overdue[key]:
            del self._overdue[key]
