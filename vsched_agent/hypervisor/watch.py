# SPDX-License-Identifier: Apache-2.0

"""Check again and again for changes of running domains that have no event."""

from collections.abc import Callable
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_lib import problem_log

LOG = logging.getLogger(__name__)


class Watch:
    """Calls a check in a thread of its own.

    :param name: of the thread.
    :param interval_s: shortest time between two checks, in seconds.
    :param check: checks all domains.
    :param pause: time between two checks, as a multiple of the duration of
        the last one, where that is longer than ``interval_s``.
    """

    def __init__(
        self,
        name: str,
        interval_s: float,
        check: Callable[[], ty.Any],
        pause: int = 0,
    ) -> None:
        self._interval_s = interval_s
        self._pause = pause
        #: Checks all domains once.
        self.check = check
        self._problems = problem_log.ProblemLog(LOG)
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=name, daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        pause_s = self._interval_s
        while not self._stopping.wait(pause_s):
            began_s = time.monotonic()
            try:
                self.check()
            except Exception as error:
                self._problems.failed(
                    'all', error, 'running domains could not be checked'
                )
            pause_s = max(
                self._interval_s, self._pause * (time.monotonic() - began_s)
            )
