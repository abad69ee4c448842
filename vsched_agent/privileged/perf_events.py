# SPDX-License-Identifier: Apache-2.0

"""perf_event_open(2), which Python does not offer.

For helpers with CAP_PERFMON: software events of other processes' threads.
"""

from collections.abc import Callable
from collections.abc import Iterable
import ctypes
import errno
import os
import platform
import struct
import typing as ty

from vsched_agent.privileged import ownership

T = ty.TypeVar('T')

# include/uapi/linux/perf_event.h
TASK_CLOCK, DUMMY = 1, 9
EXCLUDE_KERNEL = 1 << 5
SAMPLE_ID_ALL = 1 << 18
USE_CLOCKID = 1 << 25
CONTEXT_SWITCH = 1 << 26

_NUMBER = {'x86_64': 298, 'ppc64': 319, 'ppc64le': 319, 's390x': 331}.get(
    platform.machine(), 241
)
_TYPE_SOFTWARE = 1
_FLAG_CLOEXEC = 8
#: struct perf_event_attr as of PERF_ATTR_SIZE_VER5: type, size, config,
#: period, sample_type, read_format, flags, wakeup, bp_type, bp_addr, bp_len,
#: branch_sample_type, regs, stack, clockid.
_ATTR = struct.Struct('=IIQQQQQIIQQQQIi8x')

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def attr(
    event: int,
    *,
    period_ns: int = 0,
    sample_type: int = 0,
    flags: int = 0,
    wakeup_events: int = 0,
    clock: int = 0,
) -> bytes:
    """Return attributes that count at once, and the thread alone.

    :param event: :data:`TASK_CLOCK` or :data:`DUMMY`.
    :param period_ns: time between samples; 0 for none.
    :param sample_type: ``PERF_SAMPLE_`` bits: the content of a sample.
    :param flags: bits of the attribute, of those above.
    :param wakeup_events: number of samples that wake a poll.
    :param clock: with :data:`USE_CLOCKID`, the clock of samples.
    :returns: struct perf_event_attr.
    """
    return _ATTR.pack(
        _TYPE_SOFTWARE,
        _ATTR.size,
        event,
        period_ns,
        sample_type,
        0,
        flags,
        wakeup_events,
        0,
        0,
        0,
        0,
        0,
        0,
        clock,
    )


def open_event(attributes: bytes, tid: int) -> int:
    """Open an event of one thread, on any CPU.

    :param attributes: from :func:`attr`.
    :returns: a file descriptor.
    :raises OSError: see perf_event_open(2).
    """
    descriptor = _syscall(
        ctypes.c_long(_NUMBER),
        ctypes.create_string_buffer(attributes, len(attributes)),
        ctypes.c_int(tid),
        ctypes.c_int(-1),
        ctypes.c_int(-1),
        ctypes.c_ulong(_FLAG_CLOEXEC),
    )
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(descriptor)


def open_each(
    opened: dict[int, T],
    tids: Iterable[int],
    most: int,
    begin: Callable[[int], T],
) -> dict[int, int]:
    """Start to watch threads that are not watched yet.

    :param opened: the open event of each watched thread; new ones are added.
    :param most: the most threads watched at once.
    :param begin: opens a thread's event, or raises OSError.
    :returns: by thread, 0 or the kernel's errno; EPERM for threads that
        vsched does not own.
    :raises ValueError: above ``most``.
    """
    wanted = tuple(tids)
    found = dict.fromkeys(ownership.refusals(wanted), errno.EPERM)
    for tid in wanted:
        if tid in found:
            continue
        if tid not in opened:
            if len(opened) >= most:
                raise ValueError('%d threads are watched already' % most)
            try:
                opened[tid] = begin(tid)
            except OSError as problem:
                found[tid] = problem.errno or -1
                continue
        found[tid] = 0
    return found
