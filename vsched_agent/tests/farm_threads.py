# SPDX-License-Identifier: Apache-2.0

"""The process of a thread farm: a program of its own.

It imports nothing of ours, so that it starts at once and stays small. It
reads one JSON object a line from its input and answers each with one:
``{"add": N}`` starts N threads and lists them, ``{"remove": [TID, ...]}``
ends some, ``{"busy_us": N}`` has the threads that are started from then on
work that long every 100 ms. It ends with its input, so it never outlives
the process that started it.
"""

from collections.abc import Iterable
import json
import os
import sys
import threading
import time
import typing as ty

#: Enough for a thread that sleeps, and 4000 of them fit into any machine.
STACK_BYTES = 64 * 1024
_BUSY_EVERY_S = 0.1
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
        while not self._ending.wait(_BUSY_EVERY_S if self._busy_us else None):
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
        removed = [
            self._workers.pop(tid)
            for tid in request.get('remove', ())
            if tid in self._workers
        ]
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
