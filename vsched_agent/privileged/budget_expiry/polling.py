# SPDX-License-Identifier: Apache-2.0

"""Check budget expiry of deadline threads between the kernel's ticks.

Without HRTICK_DL the kernel detects an expired budget only at a tick, and a
budget of 1 ms may run for 4. Setting a running thread's parameters makes the
kernel account and throttle it at once (kernel/sched/deadline.c:
``dequeue_task_dl``). Setting the same parameters does nothing, so each check
changes them by a nanosecond, back and forth. Both have the same bandwidth in
the kernel's admission control: no change can be refused, and what is
admissible stays the same.

A check reads the remaining budget, and the next check follows when the thread
has run for that (:mod:`vsched_agent.privileged.budget_expiry.alarms`): one
check per budget, right after its end. Without perf events threads are checked
once an interval.

The kernel has no compare-and-set for parameters: a thread is read, compared
and set in two calls, serialized within this process. Other code must call
``forget`` before it changes a thread.
"""

from collections.abc import Iterable
import contextlib
import dataclasses
import os
import time

from vsched_agent.privileged.budget_expiry import alarms
from vsched_agent.privileged import entering
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads

#: The kernel accepts no runtime below this.
_LEAST_NS = 1_024
#: Delay of a check after a budget's end: a check before it has no effect.
_BEHIND_NS = 20_000


def alternate(attr: syscalls.Attr) -> syscalls.Attr | None:
    """Return parameters next to these, with the same bandwidth.

    :param attr: of a thread under SCHED_DEADLINE.
    :returns: a nanosecond more or less of runtime; for periods below 2.1 ms,
        where that may change the bandwidth, of the period. None when that
        changes it as well: for more than 0.47 of a period of 1 ms, for more
        than 0.23 of half of that, and so on; and for a whole CPU, whose budget
        does not expire.
    """
    units = syscalls.kernel_bandwidth(attr.runtime_ns, attr.period_ns)
    for more_ns, longer_ns in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        runtime_ns = attr.runtime_ns + more_ns
        period_ns = attr.period_ns + longer_ns
        if _LEAST_NS <= runtime_ns <= period_ns and units == (
            syscalls.kernel_bandwidth(runtime_ns, period_ns)
        ):
            return attr._replace(
                runtime_ns=runtime_ns,
                deadline_ns=period_ns,
                period_ns=period_ns,
            )
    return None


def until_check_ns(
    request: entering.Request, left_ns: int | None, check_ns: int
) -> int:
    """Return the CPU time after which a thread should be checked again.

    :param request: its parameters.
    :param left_ns: its budget right after a check; an overrun is charged to
        the next one. None when unknown.
    :param check_ns: for reclaiming threads, whose budget the kernel stretches,
        and for those with an unknown budget.
    """
    if left_ns is None or request.flags & syscalls.FLAG_RECLAIM:
        return check_ns
    if left_ns <= 0:
        left_ns = left_ns % request.runtime_ns or request.runtime_ns
    return left_ns + _BEHIND_NS


@dataclasses.dataclass
class _Thread:
    """A thread whose budgets are checked.

    :param wanted: the requested parameters.
    :param other: the alternative ones.
    :param view: reads the remaining budget; None without an alarm.
    """

    request: entering.Request
    wanted: syscalls.Attr
    other: syscalls.Attr
    view: threads.View | None = None


class Watched:
    """The threads whose budgets are checked. Not thread-safe."""

    def __init__(self) -> None:
        self._threads: dict[int, _Thread] = {}
        self.alarms = alarms.Alarms()
        #: Threads to check, in this order.
        self._due: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._threads)

    def add(self, request: entering.Request, event: int | None = None) -> None:
        """Check a thread; one without an :func:`alternate` is skipped.

        :param request: the parameters that were set.
        :param event: for its alarm; owned by this object from now on.
        """
        self._drop(request.tid)
        other = alternate(request.attr)
        if other is None:
            if event is not None:
                os.close(event)
            return
        self._threads[request.tid] = one = _Thread(
            request, request.attr, other
        )
        if event is not None:
            # Without memory for it the thread is checked once an interval.
            with contextlib.suppress(OSError):
                self.alarms.add(request.tid, event)
                one.view = threads.View(request.tid)
        self._due[request.tid] = None

    def _drop(self, tid: int) -> _Thread | None:
        one = self._threads.pop(tid, None)
        if one is not None:
            self.alarms.drop(tid)
            if one.view is not None:
                one.view.close()
        return one

    def forget(self, tid: int) -> entering.Request | None:
        """Stop checking a thread, and set exactly what was requested.

        :returns: the request; None when the thread was not checked.
        """
        one = self._drop(tid)
        if one is None:
            return None
        with contextlib.suppress(OSError):
            if syscalls.get_attr(tid) == one.other:
                syscalls.set_attr(tid, one.wanted)
        return one.request

    def set_flags(self, request: entering.Request, flags: int) -> bool:
        """Change a thread's flags, whether its budget is checked or not.

        :param request: the thread's parameters; its flags are ignored.
        :param flags: the new ones; RESET_ON_FORK is added.
        :returns: False when its parameters differ; nothing is changed then.
        :raises OSError: with the kernel's errno.
        """
        held = syscalls.get_attr(request.tid)
        wanted = request._replace(flags=flags).attr
        other = alternate(wanted)
        found = held._replace(flags=wanted.flags)
        if found != wanted and found != other:
            return False
        if found != held:
            syscalls.set_attr(request.tid, found)
        one = self._threads.get(request.tid)
        if one is not None and other is not None:
            one.request = request._replace(flags=flags)
            one.wanted, one.other = wanted, other
        return True

    def forget_all(self) -> None:
        """Stop checking all threads."""
        for tid in list(self._threads):
            self.forget(tid)

    @property
    def silent(self) -> list[int]:
        """Return the threads without an alarm."""
        if len(self.alarms) == len(self._threads):
            return []
        return [tid for tid in self._threads if tid not in self.alarms]

    def due(self, tids: Iterable[int]) -> None:
        """Queue threads for a check."""
        self._due.update(dict.fromkeys(tids))

    def check(self, until_ns: int, check_ns: int = 0) -> bool:
        """Check the threads that are due.

        :param until_ns: the caller's own CPU time at which to stop.
        :param check_ns: see :func:`until_check_ns`.
        :returns: whether some are still due.
        """
        while self._due:
            tid = next(iter(self._due))
            del self._due[tid]
            self._check(tid, check_ns)
            if time.thread_time_ns() >= until_ns:
                break
        return bool(self._due)

    def _check(self, tid: int, check_ns: int) -> None:
        one = self._threads.get(tid)
        if one is None:
            return
        try:
            found = syscalls.get_attr(tid)
            if found == one.wanted:
                syscalls.set_attr(tid, one.other)
            elif found == one.other:
                syscalls.set_attr(tid, one.wanted)
            else:
                # Something else has changed it: leave it alone.
                self._drop(tid)
                return
            if one.view is not None and tid in self.alarms:
                # The remaining budget is as of this check.
                self.alarms.set(
                    tid,
                    until_check_ns(one.request, one.view.left_ns(), check_ns),
                )
        except OSError:
            # It has ended, or it is pinned and the kernel accepts no change.
            self._drop(tid)
