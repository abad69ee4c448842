# SPDX-License-Identifier: Apache-2.0

"""Record when other processes' threads start and stop running.

The kernel writes a record of each switch to and from a watched thread into a
ring buffer: perf_event_open(2), ``context_switch``.
"""

from collections.abc import Iterable
import mmap
import os
import struct
import time
import typing as ty

from vsched_agent.privileged import clocks
from vsched_agent.privileged import perf_events

#: Most threads watched at once.
MOST = 256
#: Pages of one ring: a power of 2. Eight hold a second of a thread that
#: is throttled each millisecond, and eight such rings are within the kernel's
#: limit for unprivileged users (perf_event_mlock_kb).
PAGES = 8

# include/uapi/linux/perf_event.h
_SAMPLE_TIME = 1 << 2
_LOST, _SWITCH = 2, 14
_MISC_OUT = 1 << 13
_HEADER = struct.Struct('=IHH')
_TIME = struct.Struct('=Q')
# Offsets of the kernel's and the reader's position in the first page.
_HEAD, _TAIL = 1024, 1032


class _Ring(ty.NamedTuple):
    descriptor: int
    memory: mmap.mmap


_open: dict[int, _Ring] = {}


@clocks.perf_pctxt.entrypoint
def open_switches(tids: Iterable[int]) -> dict[int, int]:
    """Start to watch threads.

    :returns: by thread, 0 or the kernel's errno; EPERM for threads that
        vsched does not own.
    :raises ValueError: above :data:`MOST`.
    """
    return perf_events.open_each(_open, tids, MOST, _ring)


@clocks.perf_pctxt.entrypoint
def read_switches(tids: Iterable[int]) -> list[list[tuple[int, bool]] | None]:
    """Return the switches since the last call or the start of the watch.

    :returns: for each thread its switches in order, as (nanoseconds of the
        steady clock, whether it started to run); None when some were lost or
        it is not watched.
    """
    return [_read(_open[tid].memory) if tid in _open else None for tid in tids]


@clocks.perf_pctxt.entrypoint
def close_switches(tids: Iterable[int]) -> None:
    """Stop watching threads."""
    for tid in tids:
        ring = _open.pop(tid, None)
        if ring is not None:
            ring.memory.close()
            os.close(ring.descriptor)


def _ring(tid: int) -> _Ring:
    descriptor = perf_events.open_event(
        perf_events.attr(
            perf_events.DUMMY,
            sample_type=_SAMPLE_TIME,
            flags=(
                perf_events.EXCLUDE_KERNEL
                | perf_events.SAMPLE_ID_ALL
                | perf_events.USE_CLOCKID
                | perf_events.CONTEXT_SWITCH
            ),
            clock=time.CLOCK_MONOTONIC,
        ),
        tid,
    )
    try:
        return _Ring(
            descriptor, mmap.mmap(descriptor, (1 + PAGES) * mmap.PAGESIZE)
        )
    except BaseException:
        os.close(descriptor)
        raise


def _read(memory: mmap.mmap) -> list[tuple[int, bool]] | None:
    size = PAGES * mmap.PAGESIZE
    # The kernel writes the head after the records.
    (head,) = _TIME.unpack_from(memory, _HEAD)
    (tail,) = _TIME.unpack_from(memory, _TAIL)
    ring = memory[mmap.PAGESIZE :]
    start = tail % size
    # Unrolled, so that records that wrap around are contiguous.
    data = (ring[start:] + ring[:start])[: head - tail]
    _TIME.pack_into(memory, _TAIL, head)
    return parse(data)


def parse(data: bytes) -> list[tuple[int, bool]] | None:
    """Parse the kernel's records.

    :returns: the switches; None when some were lost.
    """
    found = []
    place = 0
    while place < len(data):
        kind, misc, length = _HEADER.unpack_from(data, place)
        if kind == _LOST:
            return None
        if kind == _SWITCH:
            (at_ns,) = _TIME.unpack_from(data, place + _HEADER.size)
            found.append((at_ns, not misc & _MISC_OUT))
        place += length
    return found
