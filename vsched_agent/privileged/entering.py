# SPDX-License-Identifier: Apache-2.0

"""Move threads into SCHED_DEADLINE or change their parameters, all or none."""

from collections.abc import Iterable
import contextlib
import errno
import os
import time
import typing as ty

from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads

#: The kernel frees the bandwidth of ended or sleeping threads at their 0-lag
#: time, up to a period later: a first EBUSY may be temporary.
BUSY_TRIES = 6
BUSY_WAIT_S = 0.02

#: How often a stuck thread is taken out of the class and put back.
_RUNNING_TRIES = 3


class Request(ty.NamedTuple):
    """The parameters requested for one thread.

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
        """Return the request as scheduling parameters."""
        return syscalls.Attr(
            syscalls.SCHED_DEADLINE,
            self.flags | syscalls.FLAG_RESET_ON_FORK,
            0,
            0,
            self.runtime_ns,
            self.period_ns,
            self.period_ns,
        )


class Failure(ty.NamedTuple):
    """Why the threads kept their former parameters.

    :param tid: the thread that failed.
    :param errno: the kernel's reason.
    :param step: ``read``, ``set``, or ``ended`` for a zombie.
    :param unrestored: threads whose parameters could not be restored.
    """

    tid: int
    errno: int
    step: str
    unrestored: tuple[int, ...] = ()


def enter(requests: Iterable[Request]) -> Failure | None:
    """Set every thread's parameters, or leave all unchanged.

    :param requests: one per thread.
    :returns: None when all are in force.
    """
    plan: list[tuple[int, Request, syscalls.Attr]] = []
    for request in requests:
        try:
            before = syscalls.get_attr(request.tid)
        except OSError as failure:
            return Failure(request.tid, failure.errno or 0, 'read')
        try:
            # A zombie has parameters, and the kernel takes new ones. It frees
            # bandwidth at the end of a thread, which here is over.
            threads.state(request.tid)
        except OSError as failure:
            return Failure(request.tid, failure.errno or 0, 'ended')
        plan.append(
            (bandwidth(request.attr) - bandwidth(before), request, before)
        )
    # Decreases first, so that a change which fits as a whole is not refused
    # halfway; undo in reverse order.
    plan.sort(key=lambda entry: entry[0])
    done: list[tuple[Request, syscalls.Attr]] = []
    for _, request, before in plan:
        try:
            _set_with_retries(request)
            if before.policy != syscalls.SCHED_DEADLINE:
                _ensure_running(request, before)
        except OSError as failure:
            return Failure(request.tid, failure.errno or 0, 'set', _undo(done))
        if before.policy == syscalls.SCHED_DEADLINE:
            leaving.changed(request.tid, before)
        done.append((request, before))
    return None


def enter_self(request: Request, comm: str) -> None:
    """Put the calling thread under SCHED_DEADLINE.

    :param request: the parameters.
    :param comm: its name from now on, in /proc/PID/task/TID/comm.
    :raises OSError: with the kernel's errno.
    """
    # The class admits only threads that may use every CPU.
    os.sched_setaffinity(request.tid, range(os.sysconf('SC_NPROCESSORS_CONF')))
    with (
        contextlib.suppress(OSError),
        open(
            '/proc/self/task/%d/comm' % request.tid, 'w', encoding='ascii'
        ) as file,
    ):
        file.write(comm)
    with leaving.exclusive:
        failure = enter([request])
    if failure is not None:
        raise OSError(failure.errno, os.strerror(failure.errno))


def bandwidth(attr: syscalls.Attr) -> int:
    """Return a thread's part of the admitted bandwidth, in 2**-20 CPU."""
    if attr.policy != syscalls.SCHED_DEADLINE:
        return 0
    return syscalls.kernel_bandwidth(
        attr.runtime_ns, attr.period_ns or attr.deadline_ns
    )


def _set_with_retries(request: Request) -> None:
    for left in reversed(range(BUSY_TRIES)):
        try:
            syscalls.set_attr(request.tid, request.attr)
        except OSError as failure:
            if failure.errno != errno.EBUSY or not left:
                raise
            time.sleep(BUSY_WAIT_S)
        else:
            return


def _ensure_running(request: Request, before: syscalls.Attr) -> None:
    """Make sure that a thread which entered the class can run.

    One that left shortly before may still be flagged as throttled, see
    :mod:`vsched_agent.privileged.leaving`. Leaving again clears the flag, as
    its 0-lag time is over by then.
    """
    for _ in range(_RUNNING_TRIES):
        if not _stuck(request):
            return
        leaving.leave([leaving.Request(request.tid, before)])
        _set_with_retries(request)


def _stuck(request: Request) -> bool:
    with threads.View(request.tid) as view:
        found = _budget(view)
        if found is None:
            return False
        time.sleep(2 * request.period_ns * 1e-9)
        return _budget(view) == found


def _budget(view: threads.View) -> tuple[int, int | None] | None:
    """Return the debt and deadline of a runnable, overrun thread, or None."""
    left_ns = view.left_ns()
    if left_ns is None or left_ns >= 0 or (view.state() != threads.RUNNABLE):
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
                failure.tid
                for failure in leaving.leave(
                    [leaving.Request(request.tid, before)]
                )
            )
    return tuple(unrestored)
