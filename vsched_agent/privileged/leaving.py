# SPDX-License-Identifier: Apache-2.0

"""Move threads out of SCHED_DEADLINE without leaking bandwidth.

What the kernel does (kernel/sched/deadline.c: ``switched_from_dl()``,
``task_non_contending()``, ``start_dl_timer()``), as measured on Linux 6.18:

* The bandwidth of a runnable thread that leaves is freed at its 0-lag time.
  That of a sleeping thread whose 0-lag time is over is never freed. So a
  sleeper is first parked on parameters whose bandwidth the kernel counts as
  zero.
* The same leak happens when a thread falls asleep between the check of its
  state and the call that takes it out. For threads that alternate between
  both states, as I/O threads do, the code therefore waits briefly until they
  sleep or are throttled; a throttled thread cannot fall asleep.
* The debt of an overrun thread is repaid in periods of its parameters; with
  the parking parameters a microsecond takes a second. So no runnable thread
  is parked, and a parked thread leaves within microseconds. An overrun
  sleeper might wake in these, so the code waits until it is replenished.
* A throttled thread that leaves stays flagged as throttled until the timer
  of its 0-lag time, but is not replenished any more. Entering the class
  before that, it would never run. So the code waits after taking out a
  runnable thread, and :mod:`vsched_agent.privileged.entering` checks that
  threads run.
* Rebuilding the root domains recounts the bandwidth of the threads in the
  class. If a thread has left before its 0-lag time, its bandwidth is then
  subtracted twice. So the wait is kept short.

The relative deadline of the parking parameters is shorter than their period on
purpose: a sleeper that wakes is throttled for the microseconds until it has
left, rather than run on a budget of 1 us.
"""

from collections.abc import Iterable
import threading
import time
import typing as ty

from vsched_agent.privileged import parking
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads

#: clock_getres(2): as coarse as the scheduler's tick.
_CLOCK_MONOTONIC_COARSE = 6
#: Assumed overrun of a runnable thread where the kernel does not show it: a
#: tick, at which budgets expire.
TICK_NS = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e9)

#: The longest wait for the timers of a thread that has left.
LONGEST_WAIT_S = 5.0
#: Interval of polling a thread's state, in seconds.
_POLL_S = 0.0005
#: Longest wait for a running thread to sleep or be throttled. One that does
#: neither for so long is unlikely to within the next microseconds.
_CATCH_S = 0.02

#: Held while this process changes deadline bandwidth: the two steps of a leave
#: are not interrupted, and a probe does not cause a refusal.
exclusive = threading.RLock()

#: By thread, the end of its last deadline under former parameters, in
#: nanoseconds of the steady clock.
_over_ns: dict[int, int] = {}
#: Expired entries are removed above this number.
_REMEMBERED = 1024


class Request(ty.NamedTuple):
    """The scheduling parameters of a thread after it leaves.

    :param tid: the thread.
    :param attr: a policy other than SCHED_DEADLINE.
    """

    tid: int
    attr: syscalls.Attr


class Failure(ty.NamedTuple):
    """A thread that could not leave.

    :param tid: the thread.
    :param errno: the kernel's reason.
    """

    tid: int
    errno: int


def leave(requests: Iterable[Request]) -> tuple[Failure, ...]:
    """Take threads out of the class; ended threads count as out.

    Return when their bandwidth is free and they may enter the class again:
    at once for sleepers, within about two periods for runnable threads.

    :param requests: one per thread.
    :returns: those that could not leave.
    """
    failures = []
    wait_ns = 0
    for request in requests:
        try:
            with threads.View(request.tid) as view:
                _await_replenished(request.tid, view)
                _await_stable(request.tid, view)
                with exclusive:
                    wait_ns = max(wait_ns, _leave(request, view))
        except ProcessLookupError:
            continue
        except OSError as failure:
            failures.append(Failure(request.tid, failure.errno or 0))
    # The kernel frees the bandwidth by timers and does not report it.
    time.sleep(min(LONGEST_WAIT_S, wait_ns * 1e-9))
    return tuple(failures)


def changed(tid: int, before: syscalls.Attr) -> None:
    """Note that a thread's parameters were changed inside the class.

    It keeps its deadline until it is replenished, for at most two former
    periods: that may be later than any deadline of the new parameters.

    :param tid: the thread.
    :param before: its former parameters.
    """
    now_ns = time.monotonic_ns()
    if len(_over_ns) >= _REMEMBERED:
        for old, over_ns in list(_over_ns.items()):
            if over_ns <= now_ns:
                del _over_ns[old]
    _over_ns[tid] = max(_over_ns.get(tid, 0), now_ns + 2 * before.period_ns)


def _await_replenished(tid: int, view: threads.View) -> None:
    """Wait until a thread is not both asleep and overrun.

    The kernel replenishes a throttled sleeper at its next period, less its
    debt. Without a replenishment the debt is from an earlier stay in the
    class, and the wait times out.
    """
    held = syscalls.get_attr(tid)
    if held.policy != syscalls.SCHED_DEADLINE:
        return
    give_up_s = None
    while (
        left_ns := view.left_ns() or 0
    ) < 0 and view.state() != threads.RUNNABLE:
        now_s = time.monotonic()
        if give_up_s is None:
            give_up_s = now_s + min(
                LONGEST_WAIT_S, _repaid_ns(held, -left_ns) * 1e-9
            )
        if now_s >= give_up_s:
            break
        time.sleep(_POLL_S)


def _await_stable(tid: int, view: threads.View) -> None:
    """Wait briefly until a thread sleeps or is throttled."""
    if syscalls.get_attr(tid).policy != syscalls.SCHED_DEADLINE:
        return
    give_up_s = time.monotonic() + _CATCH_S
    while (
        view.state() == threads.RUNNABLE
        and (view.left_ns() or 0) >= 0
        and time.monotonic() < give_up_s
    ):
        time.sleep(_POLL_S)


def _repaid_ns(held: syscalls.Attr, owed_ns: int) -> int:
    """Return the longest time in which a thread repays its debt.

    Its deadline may have been moved for an earlier debt of up to a tick.
    """
    return 2 * held.period_ns + (
        (owed_ns + TICK_NS) * held.period_ns // held.runtime_ns
    )


def _leave(request: Request, view: threads.View) -> int:
    """Take one thread out.

    :returns: nanoseconds until its bandwidth is free.
    """
    tid, attr = request
    held = syscalls.get_attr(tid)
    if held.policy != syscalls.SCHED_DEADLINE:
        syscalls.set_attr(tid, attr)
        return 0
    left_ns, ran_ns = view.left_ns(), view.run_ns()
    if view.state() == threads.RUNNABLE:
        syscalls.set_attr(tid, attr)
        owed_ns = TICK_NS if left_ns is None else max(0, -left_ns)
        last_ns = _over_ns.pop(tid, 0) - time.monotonic_ns()
        return max(last_ns, _repaid_ns(held, owed_ns))
    parking.park_and_set(tid, attr)
    if view.run_ns() == ran_ns and view.state() != threads.RUNNABLE:
        return 0
    # It may have woken while parked and be flagged as throttled until the next
    # period of the parking parameters.
    return parking.PARKED.period_ns
