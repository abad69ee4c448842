# SPDX-License-Identifier: Apache-2.0

"""Sample the probes' CPU clocks."""

from collections.abc import Callable
from collections.abc import Sequence
import threading
import time
import typing as ty

from vsched_agent.profiling.error import clocks
from vsched_agent.profiling.error import sched_account


class Window(ty.NamedTuple):
    """What a thread got in a while.

    :param length_ns: how long it really was.
    :param got_ns: CPU time.
    """

    length_ns: int
    got_ns: int


#: An account that is this old at most, in nanoseconds, against what was got:
#: a scale is no better than that.
_STALE_NS = 10_000_000
_SCALED_FROM = 100


def windows(
    watched: clocks.Clocks,
    tids: Sequence[int],
    count: int,
    window_s: float,
    tick_us: int,
    stopping: threading.Event,
    on_window: Callable[[int], None] = lambda number: None,
) -> list[list[Window]]:
    """Sample several threads at the same times.

    A late sample makes its window longer and the next one shorter; neither is
    an error, because the reserved time is computed for the same window.

    A thread got what the scheduler charged it between two samples
    (:mod:`vsched_agent.profiling.error.sched_account`).

    A thread that runs at every sample has no exact charge, only its clock.
    The clock also counts context switches and time stolen from this host,
    which the scheduler does not charge. So the sum over all windows is the
    scheduler's, and the clock divides it among the windows. In each window
    the result differs by at most one tick from the scheduler's account, which
    may be late by that much.

    :param watched: their clocks.
    :param tids: the threads.
    :param count: number of windows.
    :param window_s: length of each.
    :param tick_us: by how much the scheduler's account may be late.
    :param stopping: ends it early when set.
    :param on_window: called with the number of windows so far.
    :returns: the windows by thread; fewer when it was ended early.
    """
    account = clocks.Ticking()
    watched.watch(tids)
    try:
        charged = account.look(tids)
        found: list[list[Window]] = [[] for _ in tids]
        exact: list[list[Window | None]] = [[] for _ in tids]
        settled = sched_account.Settling(watched, account, stopping)
        last, early = watched.look(tids), account.look(tids)
        had = settled.charged_ns(tids, last)
        start_s = time.monotonic()
        for number in range(1, count + 1):
            if stopping.wait(
                max(0.0, start_s + number * window_s - time.monotonic())
            ):
                break
            now, late = watched.look(tids), account.look(tids)
            has = settled.charged_ns(tids, now)
            for mine, before, after, charged_before, charged_after in zip(
                found, last, now, early, late, strict=True
            ):
                mine.append(
                    between(
                        before,
                        after,
                        charged_before,
                        charged_after,
                        tick_us * 1000,
                    )
                )
            for known, before, after, earlier_ns, later_ns in zip(
                exact, last, now, had, has, strict=True
            ):
                known.append(
                    None
                    if earlier_ns is None or later_ns is None
                    else Window(
                        after.at_ns - before.at_ns, later_ns - earlier_ns
                    )
                )
            last, early, had = now, late, has
            on_window(number)
        return [
            [
                one or other
                for one, other in zip(
                    known, _scaled(mine, before, after), strict=True
                )
            ]
            for known, mine, before, after in zip(
                exact, found, charged, account.look(tids), strict=True
            )
        ]
    finally:
        watched.leave(tids)


def between(
    before: clocks.Look,
    after: clocks.Look,
    charged_before: clocks.Look,
    charged_after: clocks.Look,
    tick_ns: int,
) -> Window:
    """What a thread got between two looks at its clock.

    :param before, after: the looks at the clock.
    :param charged_before, charged_after: at the scheduler's account, at about
        these times.
    :param tick_ns: by how much an account is late at the most.
    """
    length_ns, got_ns = (
        after.at_ns - before.at_ns,
        (after.ran_ns - before.ran_ns),
    )
    # Both by their own time, of which the looks themselves take some.
    charged_ns = round(
        (charged_after.ran_ns - charged_before.ran_ns)
        * length_ns
        / (charged_after.at_ns - charged_before.at_ns)
    )
    return Window(
        length_ns, min(max(got_ns, charged_ns - tick_ns), charged_ns + tick_ns)
    )


def _scaled(
    found: list[Window], before: clocks.Look, after: clocks.Look
) -> list[Window]:
    # Both by their own time: on a busy host the account is looked at some
    # time before the first window and after the last.
    return scaled(
        found,
        (after.ran_ns - before.ran_ns)
        / (after.at_ns - before.at_ns)
        * sum(window.length_ns for window in found),
        sum(window.got_ns for window in found),
    )


def scaled(
    found: list[Window], charged_ns: float, counted_ns: float
) -> list[Window]:
    """Have windows add up to what the scheduler charged.

    :param charged_ns: CPU time by the scheduler, as old as a tick.
    :param counted_ns: in the same while, by the clock of the windows.
    :returns: the windows themselves when it is too little for that.
    """
    if counted_ns < _SCALED_FROM * _STALE_NS:
        return found
    return [
        Window(
            window.length_ns, round(window.got_ns * charged_ns / counted_ns)
        )
        for window in found
    ]
