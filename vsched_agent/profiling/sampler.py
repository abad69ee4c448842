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

"""Looks at CPU clocks, each by its own time."""

from collections.abc import Callable
from collections.abc import Sequence
import threading
import time
import typing as ty

#: A look that took longer was interrupted between the two clocks, in
#: nanoseconds; it is repeated.
_QUICK_NS = 20_000
_TRIES = 10


class Look(ty.NamedTuple):
    """What a thread had used at a moment.

    :param at_ns: steady clock.
    :param ran_ns: CPU time.
    """

    at_ns: int
    ran_ns: int


class Window(ty.NamedTuple):
    """What a thread got in a while.

    :param length_ns: how long it really was.
    :param got_ns: CPU time.
    """

    length_ns: int
    got_ns: int


def look(read: Callable[[], int]) -> Look:
    """Read a CPU clock and the time at which it stood so.

    :param read: CPU time in nanoseconds.
    """
    best: tuple[int, Look] | None = None
    for _ in range(_TRIES):
        before_ns = time.monotonic_ns()
        ran_ns = read()
        after_ns = time.monotonic_ns()
        took_ns = after_ns - before_ns
        if best is None or took_ns < best[0]:
            best = took_ns, Look((before_ns + after_ns) // 2, ran_ns)
        if took_ns <= _QUICK_NS:
            break
    return ty.cast(tuple[int, Look], best)[1]


def windows(readers: Sequence[Callable[[], int]], count: int,
            window_s: float, stopping: threading.Event,
            on_window: Callable[[int], None] = lambda number: None,
            ) -> list[list[Window]]:
    """Look at several clocks at once, again and again.

    A look that comes late makes its window longer and the next one shorter;
    neither is an error, because what was promised is reckoned for the same
    time.

    :param readers: CPU times in nanoseconds.
    :param count: how many windows.
    :param window_s: how long each.
    :param stopping: ends it early when set.
    :param on_window: told the number of windows so far.
    :returns: by reader its windows; fewer when it was ended.
    """
    found: list[list[Window]] = [[] for _ in readers]
    last = [look(read) for read in readers]
    start_s = time.monotonic()
    for number in range(1, count + 1):
        if stopping.wait(max(
                0.0, start_s + number * window_s - time.monotonic())):
            break
        for index, read in enumerate(readers):
            now = look(read)
            found[index].append(Window(
                now.at_ns - last[index].at_ns,
                now.ran_ns - last[index].ran_ns))
            last[index] = now
        on_window(number)
    return found
