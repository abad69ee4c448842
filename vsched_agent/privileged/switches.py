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

"""When other processes' threads began and ceased to run.

The kernel writes a record at each switch to and from a watched thread into
a ring of memory: perf_event_open(2), ``context_switch``.
"""

from collections.abc import Iterable
import mmap
import os
import struct
import time
import typing as ty

from vsched_agent.privileged import clocks
from vsched_agent.privileged import perf_events

#: As many threads can be watched at once.
MOST = 256
#: Pages of one ring: a power of 2. Eight hold a second of a thread that
#: is throttled each millisecond, and eight such rings are within what the
#: kernel lets anyone lock (perf_event_mlock_kb).
PAGES = 8

# include/uapi/linux/perf_event.h
_SAMPLE_TIME = 1 << 2
_LOST, _SWITCH = 2, 14
_MISC_OUT = 1 << 13
_HEADER = struct.Struct('=IHH')
_TIME = struct.Struct('=Q')
# Where the first page keeps how far the kernel has written, and we read.
_HEAD, _TAIL = 1024, 1032


class _Ring(ty.NamedTuple):
    descriptor: int
    memory: mmap.mmap


_open: dict[int, _Ring] = {}


@clocks.perf_pctxt.entrypoint
def open_switches(tids: Iterable[int]) -> dict[int, int]:
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
            _open[tid], found[tid] = _ring(tid), 0
        except OSError as problem:
            found[tid] = problem.errno or -1
    return found


@clocks.perf_pctxt.entrypoint
def read_switches(tids: Iterable[int],
                  ) -> list[list[tuple[int, bool]] | None]:
    """What the threads did since the last call, or since they are watched.

    :returns: for each thread its switches in order, as (nanoseconds of the
        steady clock, whether it began to run); None when some were lost or
        it is not watched.
    """
    return [_read(_open[tid].memory) if tid in _open else None
            for tid in tids]


@clocks.perf_pctxt.entrypoint
def close_switches(tids: Iterable[int]) -> None:
    """Watch threads no longer."""
    for tid in tids:
        ring = _open.pop(tid, None)
        if ring is not None:
            ring.memory.close()
            os.close(ring.descriptor)


def _ring(tid: int) -> _Ring:
    descriptor = perf_events.open_event(perf_events.attr(
        perf_events.DUMMY, sample_type=_SAMPLE_TIME,
        flags=(perf_events.EXCLUDE_KERNEL | perf_events.SAMPLE_ID_ALL |
               perf_events.USE_CLOCKID | perf_events.CONTEXT_SWITCH),
        clock=time.CLOCK_MONOTONIC), tid)
    try:
        return _Ring(descriptor, mmap.mmap(
            descriptor, (1 + PAGES) * mmap.PAGESIZE))
    except BaseException:
        os.close(descriptor)
        raise


def _read(memory: mmap.mmap) -> list[tuple[int, bool]] | None:
    size = PAGES * mmap.PAGESIZE
    # The kernel writes the head after the records.
    head, = _TIME.unpack_from(memory, _HEAD)
    tail, = _TIME.unpack_from(memory, _TAIL)
    ring = memory[mmap.PAGESIZE:]
    start = tail % size
    # Unrolled, so that a record that wraps around is one piece.
    data = (ring[start:] + ring[:start])[:head - tail]
    _TIME.pack_into(memory, _TAIL, head)
    return parse(data)


def parse(data: bytes) -> list[tuple[int, bool]] | None:
    """Switches from the kernel's records.

    :returns: None when it says that some were lost.
    """
    found = []
    place = 0
    while place < len(data):
        kind, misc, length = _HEADER.unpack_from(data, place)
        if kind == _LOST:
            return None
        if kind == _SWITCH:
            at_ns, = _TIME.unpack_from(data, place + _HEADER.size)
            found.append((at_ns, not misc & _MISC_OUT))
        place += length
    return found
