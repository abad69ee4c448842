# SPDX-License-Identifier: Apache-2.0
"""Logs a problem that repeats in every pass of a loop once, not each time.

The first occurrence is logged with its traceback. While it repeats, one line
per reminder interval says how often.
"""

import collections
from collections.abc import Callable
from collections.abc import Hashable
import dataclasses
import logging
import threading
import time
import typing as ty

#: Time between two reminders of the same problem, in seconds.
REMINDER_S = 300.0
#: Most problems that are remembered; a new one replaces the oldest.
MOST_PROBLEMS = 512


class Log(ty.Protocol):
    """The part of a logger that is used."""

    def log(
        self, level: int, msg: str, *args: ty.Any, **kwargs: ty.Any
    ) -> ty.Any: ...


@dataclasses.dataclass(slots=True)
class _Problem:
    """One problem.

    :param seen_s: when it occurred last.
    :param logged_s: when it was logged last.
    :param unlogged: occurrences since then.
    """

    seen_s: float
    logged_s: float
    unlogged: int = 0


class ProblemLog:
    """Remembers which problems were logged. Safe from any thread.

    :param log: the module's logger.
    :param reminder_s: seconds between two lines about the same problem. One
        that has not occurred for so long is logged in full again.
    :param clock: returns seconds that never decrease.
    """

    def __init__(
        self,
        log: Log,
        reminder_s: float = REMINDER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._reminder_s = reminder_s
        self._clock = clock
        self._lock = threading.Lock()
        self._problems: collections.OrderedDict[Hashable, _Problem] = (
            collections.OrderedDict()
        )

    def failed(
        self,
        subject: str,
        error: BaseException,
        message: str,
        *arguments: ty.Any,
    ) -> None:
        """Log that something failed.

        Two problems are the same when their subject, message, class of the
        exception and the place that raised it are the same.

        :param subject: what failed, such as an instance.
        :param error: the exception.
        :param message: a format for one line, with its arguments.
        """
        key = (subject, message, type(error), _origin(error))
        now_s = self._clock()
        with self._lock:
            problem = self._problems.pop(key, None)
            if problem is not None and (
                now_s - problem.seen_s >= self._reminder_s
            ):
                problem = None
            new = problem is None
            if problem is None:
                problem = _Problem(now_s, now_s)
            problem.seen_s = now_s
            self._problems[key] = problem
            if len(self._problems) > MOST_PROBLEMS:
                self._problems.popitem(last=False)
            repeats = 0
            if not new:
                problem.unlogged += 1
                if now_s - problem.logged_s < self._reminder_s:
                    return
                repeats, problem.unlogged = problem.unlogged, 0
                problem.logged_s = now_s
        if new:
            self._log.log(logging.ERROR, message, *arguments, exc_info=error)
        else:
            self._log.log(
                logging.ERROR,
                message + ': %s, %d more times',
                *arguments,
                ascii(error)[:200],
                repeats,
            )


def _origin(error: BaseException) -> tuple[str, int] | None:
    trace = error.__traceback__
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename, trace.tb_lineno
