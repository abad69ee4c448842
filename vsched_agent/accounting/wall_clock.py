# SPDX-License-Identifier: Apache-2.0

"""Times of the monotonic clock, as times of the wall clock.

Intervals are measured on the monotonic clock and reported with the time of
their end. A thread may lose the CPU for long between two readings of clocks,
so whoever reads the wall clock some time after the counters reports an end
that does not fit the interval.
"""

import time

#: Two readings of the monotonic clock that are closer enclose one of the wall
#: clock well enough, in nanoseconds.
_CLOSE_NS = 100_000
_ATTEMPTS = 5


def offset_ns() -> int:
    """Return what the wall clock is ahead of the monotonic clock.

    It is as exact as half of the shortest time in which both were read in
    one of a few attempts.

    :returns: nanoseconds; they change when somebody sets the wall clock.
    """
    least_ns: int | None = None
    offset = 0
    for _ in range(_ATTEMPTS):
        before_ns = time.monotonic_ns()
        wall_ns = time.time_ns()
        took_ns = time.monotonic_ns() - before_ns
        if least_ns is None or took_ns < least_ns:
            least_ns, offset = took_ns, wall_ns - before_ns - took_ns // 2
        if took_ns <= _CLOSE_NS:
            break
    return offset


def seconds(at_ns: int, ahead_ns: int) -> float:
    """Return a time of the monotonic clock in seconds since the epoch.

    :param at_ns: on the monotonic clock.
    :param ahead_ns: what :func:`offset_ns` returned.
    """
    return (at_ns + ahead_ns) / 1e9
