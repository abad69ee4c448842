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

"""Threads leave SCHED_DEADLINE without taking bandwidth with them.

What the kernel does (kernel/sched/deadline.c: ``switched_from_dl()``,
``task_non_contending()``, ``start_dl_timer()``), as measured on Linux 6.18:

* A runnable thread that leaves gives its bandwidth back, at its 0-lag time.
  A sleeper whose 0-lag time is over gives nothing back, ever. So a sleeper
  is first parked on parameters whose bandwidth the kernel counts as zero.
* What an overdrawn thread owes is counted in periods of the parameters it
  has; on the parking place a microsecond is a second. So nothing that runs
  is parked, and what is parked leaves within microseconds. A sleeper that
  is overdrawn might wake in these: it is replenished or awake soon, and
  waited for before it is parked.
* A throttled thread that leaves stays flagged as throttled until the timer
  of its 0-lag time, but nobody replenishes it any more. Coming back into
  the class in between, it would stand still for good. So whoever left while
  runnable is waited for, and :mod:`vsched_agent.privileged.entering` looks
  whether those that come back run.
* Rebuilding the root domains makes the books anew from the threads in the
  class. If a thread has left and its 0-lag time is still to come, its
  bandwidth is then taken off once more. So the wait is kept short.

The relative deadline of the parking place is shorter than its period on
purpose: a sleeper that wakes on it is held back for the microseconds until
it is out, rather than let loose on a budget of 1 us.
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
#: What a runnable thread may have overdrawn where the kernel does not tell:
#: a tick, at which budgets end.
TICK_NS = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e9)

#: The longest wait for the timers of a thread that has left.
SETTLE_MOST_S = 5.0
#: How often an overdrawn sleeper is looked at.
_LOOK_S = 0.0005

#: Held by whoever changes deadline bandwidth in this process, so that
#: nobody comes between the two steps of a leave and that a probe does not
#: refuse an instance.
exclusive = threading.RLock()

#: By thread, when the last deadline it got under parameters that it holds no
#: longer is over, in nanoseconds of the steady clock.
_over_ns: dict[int, int] = {}
#: As many are remembered before those of the past are forgotten.
_REMEMBERED = 1024


class Request(ty.NamedTuple):
    """How one thread shall be scheduled instead.

    :param tid: the thread.
    :param attr: a policy other than SCHED_DEADLINE.
    """

    tid: int
    attr: syscalls.Attr


class Failure(ty.NamedTuple):
    """A thread that did not get what was asked.

    :param tid: the thread.
    :param errno: the kernel's reason.
    """

    tid: int
    errno: int


def leave(requests: Iterable[Request]) -> tuple[Failure, ...]:
    """Take threads out of the class; those that are gone count as out.

    Returns when their bandwidth is free and they may enter the class again:
    at once for sleepers, within about two periods for runnable threads.

    :param requests: one a thread.
    :returns: those that could not leave.
    """
    failures = []
    settled_ns = 0
    for request in requests:
        try:
            with threads.View(request.tid) as view:
                _await_paid(request.tid, view)
                with exclusive:
                    settled_ns = max(settled_ns, _leave(request, view))
        except ProcessLookupError:
            continue
        except OSError as failure:
            failures.append(Failure(request.tid, failure.errno or 0))
    # What they left behind is a matter of timers, of which nobody tells.
    time.sleep(min(SETTLE_MOST_S, settled_ns * 1e-9))
    return tuple(failures)


def changed(tid: int, before: syscalls.Attr) -> None:
    """A thread was given other parameters inside the class.

    The deadline it has stays until it is replenished, at most two of the
    periods it had: it may be later than any that the new ones give.

    :param tid: the thread.
    :param before: what it held.
    """
    now_ns = time.monotonic_ns()
    if len(_over_ns) >= _REMEMBERED:
        for old, over_ns in list(_over_ns.items()):
            if over_ns <= now_ns:
                del _over_ns[old]
    _over_ns[tid] = max(_over_ns.get(tid, 0), now_ns + 2 * before.period_ns)


def _await_paid(tid: int, view: threads.View) -> None:
    """Wait until a thread does not sleep while it is overdrawn.

    The kernel replenishes a throttled sleeper at its next period, from its
    debt on; one that nobody replenishes was overdrawn in another life.
    """
    held = syscalls.get_attr(tid)
    if held.policy != syscalls.SCHED_DEADLINE:
        return
    give_up_s = None
    while ((left_ns := view.left_ns() or 0) < 0 and
           view.state() != threads.RUNNABLE):
        now_s = time.monotonic()
        if give_up_s is None:
            give_up_s = now_s + min(
                SETTLE_MOST_S, _repaid_ns(held, -left_ns) * 1e-9)
        if now_s >= give_up_s:
            break
        time.sleep(_LOOK_S)


def _repaid_ns(held: syscalls.Attr, owed_ns: int) -> int:
    """The time in which a thread has paid what it owes, at the most.

    Its deadline was moved for what it owed before that, which was a tick at
    the most as well.
    """
    return 2 * held.period_ns + (
        (owed_ns + TICK_NS) * held.period_ns // held.runtime_ns)


def _leave(request: Request, view: threads.View) -> int:
    """Take one thread out.

    :returns: nanoseconds until nothing of it remains in the class.
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
    # It may have woken on the parking place and be flagged as throttled
    # until that place's next period.
    return parking.PARKED.period_ns
