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

"""CPU clocks of other processes' threads, exact to this moment.

What procfs and clock_gettime(2) say of a running thread of another process
is as old as its CPU's last tick. A perf event's clock is read on the CPU
that runs the thread: perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK.
"""

from collections.abc import Iterable
import os
import struct
import time

from oslo_privsep import capabilities

from vsched_agent.privileged import context
from vsched_agent.privileged import perf_events

perf_pctxt = context.Context(
    'perf_pctxt', __name__, 'vsched_perf_privileged',
    [capabilities.CAP_PERFMON])

#: As many threads are watched at once.
MOST = 1024

_COUNT = struct.Struct('=Q')

#: A look that took longer was interrupted between the two clocks, in
#: nanoseconds; it is repeated.
_QUICK_NS = 20_000
_TRIES = 10

_open: dict[int, int] = {}


@perf_pctxt.entrypoint
def open_clocks(tids: Iterable[int]) -> dict[int, int]:
    """Begin to watch threads.

    :returns: by thread, 0 or the kernel's errno.
    :raises ValueError: above :data:`MOST`.
    """
    found = {}
    for tid in tids:
        if tid in _open:
            found[tid] = 0
            continue
        if len(_open) >= MOST:
            raise ValueError('%d threads are watched already' % MOST)
        try:
            _open[tid] = perf_events.open_event(
                perf_events.attr(perf_events.TASK_CLOCK), tid)
            found[tid] = 0
        except OSError as problem:
            found[tid] = problem.errno or -1
    return found


@perf_pctxt.entrypoint
def look(tids: Iterable[int]) -> list[tuple[int, int]]:
    """Read clocks, each with the time at which it stood so.

    :param tids: watched threads.
    :returns: (steady clock, CPU time since it is watched), nanoseconds.
    :raises KeyError: for one that is not watched.
    """
    return [_look(_open[tid]) for tid in tids]


@perf_pctxt.entrypoint
def close_clocks(tids: Iterable[int]) -> None:
    """Watch threads no longer."""
    for tid in tids:
        descriptor = _open.pop(tid, None)
        if descriptor is not None:
            os.close(descriptor)


def _look(descriptor: int) -> tuple[int, int]:
    found, shortest_ns = (0, 0), 0
    for attempt in range(_TRIES):
        before_ns = time.monotonic_ns()
        ran_ns, = _COUNT.unpack(os.read(descriptor, _COUNT.size))
        after_ns = time.monotonic_ns()
        took_ns = after_ns - before_ns
        if not attempt or took_ns < shortest_ns:
            found = (before_ns + after_ns) // 2, ran_ns
            shortest_ns = took_ns
        if took_ns <= _QUICK_NS:
            break
    return found
