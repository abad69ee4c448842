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

"""Real threads that stand for vCPUs, in a process of their own.

The process reads one JSON object a line from its input and answers each
with one: ``{"add": N}`` starts N threads and tells them, ``{"remove":
[TID, ...]}`` ends some, ``{"busy_us": N}`` has the threads that are
started from then on work that long every 100 ms. It ends with its input, so
it never outlives whoever started it.
"""

from collections.abc import Iterable
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import typing as ty

#: Enough for a thread that sleeps, and 4000 of them fit into any machine.
STACK_BYTES = 64 * 1024
_BUSY_EVERY_S = 0.1


class ThreadFarm:
    """The process with the threads, seen from outside.

    :param busy_us: work of each thread every 100 ms, in microseconds; 0
        sleeps only.
    """

    def __init__(self, busy_us: int = 0) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, '-m', __name__], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        if busy_us:
            self._ask({'busy_us': busy_us})

    @property
    def pid(self) -> int:
        """The process that the threads belong to."""
        return self._process.pid

    def add(self, count: int) -> tuple[int, ...]:
        """Start threads.

        :returns: their numbers.
        """
        return tuple(self._ask({'add': count}))

    def remove(self, tids: Iterable[int]) -> None:
        """End threads; they are gone when this returns."""
        self._ask({'remove': list(tids)})

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process.stdin is not None:
                # Broken when the process has died already.
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def _ask(self, request: dict[str, ty.Any]) -> ty.Any:
        with self._lock:
            stdin, stdout = self._process.stdin, self._process.stdout
            if stdin is None or stdout is None:
                raise RuntimeError('the farm has no pipes')
            stdin.write(json.dumps(request) + '\n')
            stdin.flush()
            answer = stdout.readline()
        if not answer:
            raise RuntimeError('the farm has ended')
        return json.loads(answer)


#: Between two looks for a thread that is on its way out, in seconds.
_LOOK_S = 0.000_2


class _Worker:
    """One thread of the farm, seen from inside."""

    def __init__(self, busy_us: int) -> None:
        self._busy_us = busy_us
        self._ending = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def tid(self) -> int:
        return self._thread.native_id or 0

    def end(self) -> None:
        self._ending.set()

    def join(self) -> None:
        self._thread.join()
        # Python lets go of a thread before the kernel has.
        while os.path.exists('/proc/self/task/%d' % self.tid):
            time.sleep(_LOOK_S)

    def _run(self) -> None:
        self._started.set()
        # A thread without work makes no timer either.
        while not self._ending.wait(
                _BUSY_EVERY_S if self._busy_us else None):
            until_ns = time.thread_time_ns() + self._busy_us * 1000
            while time.thread_time_ns() < until_ns:
                pass


class _Farm:
    def __init__(self) -> None:
        self._busy_us = 0
        self._workers: dict[int, _Worker] = {}

    def serve(self, requests: Iterable[str], answers: ty.TextIO) -> None:
        for line in requests:
            answers.write(json.dumps(self._do(json.loads(line))) + '\n')
            answers.flush()

    def _do(self, request: dict[str, ty.Any]) -> ty.Any:
        if 'busy_us' in request:
            self._busy_us = int(request['busy_us'])
        added = [_Worker(self._busy_us) for _ in range(request.get('add', 0))]
        self._workers.update((one.tid, one) for one in added)
        removed = [self._workers.pop(tid)
                   for tid in request.get('remove', ())
                   if tid in self._workers]
        for one in removed:
            one.end()
        for one in removed:
            one.join()
        return [one.tid for one in added]


def main() -> None:
    """Be the process with the threads."""
    threading.stack_size(STACK_BYTES)
    _Farm().serve(sys.stdin, sys.stdout)


if __name__ == '__main__':
    main()
