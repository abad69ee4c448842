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

When to look follows from what a look finds: so much of the budget is left,
and when the thread has run for that (:mod:`vsched_agent.privileged.alarms`)
it is looked at again. That is once a budget, right after its end. Where the
kernel rings no alarms threads are looked at once an interval.

Nothing tells the kernel to change parameters only if they are such, so a
thread is read, compared and set in two calls that nobody of this process
comes between. Others must have it forgotten before they change it.
"""

from collections.abc import Iterable
import contextlib
import dataclasses
import os
import time

from vsched_agent.privileged import alarms
from vsched_agent.privileged import entering
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads

#: The kernel takes no runtime below that.
_LEAST_NS = 1_024
#: So long after a budget's end it is looked at: a look before it is in vain.
_BEHIND_NS = 20_000


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


def until_look_ns(request: entering.Request, left_ns: int | None,
                  check_ns: int) -> int:
    """How long a thread runs until it should be looked at again.

    :param request: what it has.
    :param left_ns: of its budget, right after a look; what is overdrawn is
        paid from the next one. None when the kernel does not tell.
    :param check_ns: for who uses idle bandwidth beyond its runtime, whose
        budget the kernel makes last longer, and where nothing is known.
    """
    if left_ns is None or request.flags & syscalls.FLAG_RECLAIM:
        return check_ns
    if left_ns <= 0:
        left_ns = left_ns % request.runtime_ns or request.runtime_ns
    return left_ns + _BEHIND_NS


@dataclasses.dataclass
class _Thread:
    """One whose budgets are looked at.

    :param wanted: what it shall have.
    :param other: what it has every other time.
    :param view: None without an alarm.
    """

    request: entering.Request
    wanted: syscalls.Attr
    other: syscalls.Attr
    view: threads.View | None = None


class Watched:
    """The threads whose budgets are looked at. Not thread-safe."""

    def __init__(self) -> None:
        self._threads: dict[int, _Thread] = {}
        self.alarms = alarms.Alarms()
        #: Whom to look at, in this order.
        self._due: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._threads)

    def add(self, request: entering.Request,
            event: int | None = None) -> None:
        """Look at a thread; one without an :func:`alternate` is passed over.

        :param request: what it was given.
        :param event: for its alarm, and this one's from now on.
        """
        self._drop(request.tid)
        other = alternate(request.attr)
        if other is None:
            if event is not None:
                os.close(event)
            return
        self._threads[request.tid] = one = _Thread(
            request, request.attr, other)
        if event is not None:
            # Where there is no room for it the thread is looked at without.
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
        """Leave a thread with exactly what it shall have.

        :returns: that; None when it was not looked at.
        """
        one = self._drop(tid)
        if one is None:
            return None
        with contextlib.suppress(OSError):
            if syscalls.get_attr(tid) == one.other:
                syscalls.set_attr(tid, one.wanted)
        return one.request

    def forget_all(self) -> None:
        """Leave all threads."""
        for tid in list(self._threads):
            self.forget(tid)

    @property
    def silent(self) -> list[int]:
        """Threads without an alarm."""
        if len(self.alarms) == len(self._threads):
            return []
        return [tid for tid in self._threads if tid not in self.alarms]

    def due(self, tids: Iterable[int]) -> None:
        """Have threads looked at, after those that wait for it already."""
        self._due.update(dict.fromkeys(tids))

    def look(self, until_ns: int, check_ns: int = 0) -> bool:
        """Look at those that are due.

        :param until_ns: of the caller's own CPU time, when to stop.
        :param check_ns: see :func:`until_look_ns`.
        :returns: whether some are still due.
        """
        while self._due:
            tid = next(iter(self._due))
            del self._due[tid]
            self._look(tid, check_ns)
            if time.thread_time_ns() >= until_ns:
                break
        return bool(self._due)

    def _look(self, tid: int, check_ns: int) -> None:
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
                # Somebody else has changed it, and knows why.
                self._drop(tid)
                return
            if one.view is not None and tid in self.alarms:
                # What is left is as of the look.
                self.alarms.set(tid, until_look_ns(
                    one.request, one.view.left_ns(), check_ns))
        except OSError:
            # It is gone, or it is pinned: then the kernel takes no change.
            self._drop(tid)
