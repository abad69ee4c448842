# SPDX-License-Identifier: Apache-2.0

"""The scheduling system calls that Python does not offer.

sched_getattr(2) and sched_setattr(2), by number, since the C library has no
wrappers for them everywhere. Reading needs no privilege and is called
directly by the agent; setting is for the privileged helper.
"""

import ctypes
import errno
import os
import platform
import struct
import threading
import typing as ty

SCHED_OTHER = 0
SCHED_FIFO = 1
SCHED_RR = 2
SCHED_BATCH = 3
SCHED_IDLE = 5
SCHED_DEADLINE = 6

#: Children start as SCHED_OTHER. Without it a deadline thread cannot fork.
FLAG_RESET_ON_FORK = 0x01
#: The thread may use idle bandwidth beyond its runtime (GRUB).
FLAG_RECLAIM = 0x02

#: (sched_setattr, sched_getattr) by machine. The table of the kernel's
#: own include/uapi/asm-generic/unistd.h serves every newer architecture.
_GENERIC = (274, 275)
_NUMBERS = {
    'x86_64': (314, 315),
    'ppc64': (355, 356),
    'ppc64le': (355, 356),
    's390x': (345, 346),
    'aarch64': _GENERIC,
    'riscv64': _GENERIC,
    'loongarch64': _GENERIC,
}
_NR_SETATTR, _NR_GETATTR = _NUMBERS.get(platform.machine(), _GENERIC)

#: struct sched_attr as of SCHED_ATTR_SIZE_VER0: size, policy, flags, nice,
#: priority, runtime, deadline, period. Every kernel accepts this size.
_ATTR = struct.Struct('=IIQiIQQQ')

# PyDLL keeps the interpreter lock over the call: the calls never sleep and
# take a microsecond, and no other thread of this process may run between two
# of them (see leaving).
_syscall = ctypes.PyDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_uint,
    ctypes.c_uint,
)


class Attr(ty.NamedTuple):
    """Scheduling parameters of one thread; see sched_setattr(2).

    :param policy: one of the ``SCHED_`` numbers.
    :param flags: ``FLAG_`` bits.
    :param nice: for SCHED_OTHER and SCHED_BATCH.
    :param priority: for SCHED_FIFO and SCHED_RR.
    :param runtime_ns: for SCHED_DEADLINE, like the next two.
    :param deadline_ns: relative deadline.
    :param period_ns: period.
    """

    policy: int
    flags: int = 0
    nice: int = 0
    priority: int = 0
    runtime_ns: int = 0
    deadline_ns: int = 0
    period_ns: int = 0


class _Buffer(threading.local):
    """One sched_attr per thread, reused as reads are frequent."""

    def __init__(self) -> None:
        self.raw = bytearray(_ATTR.size)
        self._view = (ctypes.c_char * _ATTR.size).from_buffer(self.raw)
        self.address = ctypes.addressof(self._view)


_buffer = _Buffer()


def get_attr(tid: int) -> Attr:
    """Return a thread's scheduling parameters.

    :param tid: the thread; 0 for the caller.
    :raises ProcessLookupError: when there is no such thread.
    :raises OSError: with the kernel's errno.
    """
    buffer = _buffer
    if _syscall(_NR_GETATTR, tid, buffer.address, _ATTR.size, 0) < 0:
        _fail('sched_getattr', tid)
    return Attr._make(_ATTR.unpack_from(buffer.raw)[1:])


def set_attr(tid: int, attr: Attr) -> None:
    """Set a thread's scheduling parameters.

    :param tid: the thread; 0 for the caller.
    :param attr: the parameters.
    :raises ProcessLookupError: when there is no such thread.
    :raises OSError: EBUSY when bandwidth is missing, EPERM when the thread may
        not run on every CPU of its root domain or the caller lacks
        CAP_SYS_NICE, EINVAL when the values are out of range.
    """
    buffer = _buffer
    _ATTR.pack_into(buffer.raw, 0, _ATTR.size, *attr)
    if _syscall(_NR_SETATTR, tid, buffer.address, 0, 0) < 0:
        _fail('sched_setattr', tid)


def _fail(call: str, tid: int) -> ty.NoReturn:
    number = ctypes.get_errno()
    raise OSError(
        number, '%s of thread %d: %s' % (call, tid, os.strerror(number))
    )


def known() -> bool:
    """Return whether this kernel has these system calls."""
    try:
        get_attr(0)
    except OSError as failure:
        if failure.errno == errno.ENOSYS:
            return False
        raise
    return True


def kernel_bandwidth(runtime_ns: int, period_ns: int) -> int:
    """Return bandwidth as the kernel counts it, truncated, in 2**-20 CPU.

    ``to_ratio()`` of kernel/sched/core.c.
    """
    return (runtime_ns << 20) // period_ns if period_ns else 0
