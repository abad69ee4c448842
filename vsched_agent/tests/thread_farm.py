# SPDX-License-Identifier: Apache-2.0

"""Real threads that stand for vCPUs, in a process of their own."""

from collections.abc import Iterable
import contextlib
import json
import os
import subprocess
import threading
import typing as ty

from vsched_agent.privileged import isolated
from vsched_agent.tests import farm_threads


class ThreadFarm:
    """The process with the threads, seen from outside.

    :param busy_us: work of each thread every 100 ms, in microseconds; 0
        sleeps only.
    """

    def __init__(self, busy_us: int = 0) -> None:
        self._lock = threading.Lock()
        self._process = isolated.start(
            isolated.command('-S', os.path.abspath(farm_threads.__file__)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
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
