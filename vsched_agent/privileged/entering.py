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

"""Threads enter SCHED_DEADLINE or change their parameters, all or none."""

from collections.abc import Iterable
import errno
import time
import typing as ty

from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads

#: Bandwidth of deadline threads that died or slept is given back at their
#: 0-lag time, up to a period later: a first EBUSY may be about ghosts.
BUSY_TRIES = 6
BUSY_WAIT_S = 0.02

#: How often a thread that stands still is taken out and put in again.
_GOING_TRIES = 3


class Request(ty.NamedTuple):
    """What one thread shall have.

    :param tid: the thread.
    :param runtime_ns: budget.
    :param period_ns: period and relative deadline.
    :param flags: ``syscalls.FLAG_`` bits; RESET_ON_FORK is added.
    """

    tid: int
    runtime_ns: int
    period_ns: int
    flags: int = 0

    @property
    def attr(self) -> syscalls.Attr:
        """The request as the kernel takes it."""
        return syscalls.Attr(
            syscalls.SCHED_DEADLINE,
            self.flags | syscalls.FLAG_RESET_ON_FORK, 0, 0,
            self.runtime_ns, self.period_ns, self.period_ns)


class Failure(ty.NamedTuple):
    """Why the threads have what they had before.

    :param tid: the thread that failed.
    :param errno: the kernel's reason.
    :param step: ``read`` or ``set``.
    :param unrestored: threads that could not be given back what they had.
    """

    tid: int
    errno: int
    step: str
    unrestored: tuple[int, ...] = ()


def enter(requests: Iterable[Request]) -> Failure | None:
    """Put every thread under its parameters, or leave all as they were.

    :param requests: one a thread.
    :returns: None when all are in force.
    """
    plan: list[tuple[int, Request, syscalls.Attr]] = []
    for request in requests:
        try:
            before = syscalls.get_attr(request.tid)
        except OSError as failure:
            return Failure(request.tid, failure.errno or 0, 'read')
        plan.append((bandwidth(request.attr) - bandwidth(before),
                     request, before))
    # What gives bandwidth back goes first, so that a change which fits as a
    # whole is not refused on the way; undoing goes in reverse likewise.
    plan.sort(key=lambda entry: entry[0])
    done: list[tuple[Request, syscalls.Attr]] = []
    for _, request, before in plan:
        try:
            _set_patiently(request)
            if before.policy != syscalls.SCHED_DEADLINE:
                _set_going(request, before)
        except OSError as failure:
            return Failure(request.tid, failure.errno or 0, 'set',
                           _undo(done))
        if before.policy == syscalls.SCHED_DEADLINE:
            leaving.changed(request.tid, before)
        done.append((request, before))
    return None


def bandwidth(attr: syscalls.Attr) -> int:
    """What a thread holds of the admitted bandwidth, in 2**-20 CPU."""
    if attr.policy != syscalls.SCHED_DEADLINE:
        return 0
    return syscalls.kernel_bandwidth(
        attr.runtime_ns, attr.period_ns or attr.deadline_ns)


def _set_patiently(request: Request) -> None:
    for left in reversed(range(BUSY_TRIES)):
        try:
            syscalls.set_attr(request.tid, request.attr)
        except OSError as failure:
            if failure.errno != errno.EBUSY or not left:
                raise
            time.sleep(BUSY_WAIT_S)
        else:
            return


def _set_going(request: Request, before: syscalls.Attr) -> None:
    """See to it that a thread which has come into the class runs.

    One that left too shortly before, whoever took it out, may still be
    flagged as throttled: see :mod:`vsched_agent.privileged.leaving`. Out
    again, the kernel forgets that, as its 0-lag time is over by then.
    """
    for _ in range(_GOING_TRIES):
        if not _stands_still(request):
            return
        leaving.leave([leaving.Request(request.tid, before)])
        _set_patiently(request)


def _stands_still(request: Request) -> bool:
    with threads.View(request.tid) as view:
        found = _budget(view)
        if found is None:
            return False
        time.sleep(2 * request.period_ns * 1e-9)
        return _budget(view) == found


def _budget(view: threads.View) -> tuple[int, int | None] | None:
    """What an overdrawn, runnable thread owes; None of any other."""
    left_ns = view.left_ns()
    if left_ns is None or left_ns >= 0 or (
            view.state() != threads.RUNNABLE):
        return None
    return left_ns, view.deadline_ns()


def _undo(done: list[tuple[Request, syscalls.Attr]]) -> tuple[int, ...]:
    unrestored = []
    for request, before in reversed(done):
        if before.policy == syscalls.SCHED_DEADLINE:
            try:
                syscalls.set_attr(request.tid, before)
            except ProcessLookupError:
                continue
            except OSError:
                unrestored.append(request.tid)
        else:
            unrestored.extend(
                failure.tid for failure in leaving.leave(
                    [leaving.Request(request.tid, before)]))
    return tuple(unrestored)
