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

"""perf_event_open(2), which Python does not offer.

For helpers with CAP_PERFMON: software events of other processes' threads.
"""

import ctypes
import os
import platform
import struct

# include/uapi/linux/perf_event.h
TASK_CLOCK, DUMMY = 1, 9
EXCLUDE_KERNEL = 1 << 5
SAMPLE_ID_ALL = 1 << 18
USE_CLOCKID = 1 << 25
CONTEXT_SWITCH = 1 << 26

_NUMBER = {
    'x86_64': 298, 'ppc64': 319, 'ppc64le': 319, 's390x': 331,
}.get(platform.machine(), 241)
_TYPE_SOFTWARE = 1
_FLAG_CLOEXEC = 8
#: struct perf_event_attr as of PERF_ATTR_SIZE_VER5: type, size, config,
#: period, sample_type, read_format, flags, wakeup, bp_type, bp_addr, bp_len,
#: branch_sample_type, regs, stack, clockid.
_ATTR = struct.Struct('=IIQQQQQIIQQQQIi8x')

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def attr(event: int, *, period_ns: int = 0, sample_type: int = 0,
         flags: int = 0, wakeup_events: int = 0, clock: int = 0) -> bytes:
    """What to count: at once, of the thread alone.

    :param event: :data:`TASK_CLOCK` or :data:`DUMMY`.
    :param period_ns: a sample after each so many; 0 for none.
    :param sample_type: ``PERF_SAMPLE_`` bits: what is in a sample.
    :param flags: bits of the attribute, of those above.
    :param wakeup_events: who polls is woken after so many samples.
    :param clock: with :data:`USE_CLOCKID`, whose time samples have.
    :returns: struct perf_event_attr.
    """
    return _ATTR.pack(
        _TYPE_SOFTWARE, _ATTR.size, event, period_ns, sample_type, 0, flags,
        wakeup_events, 0, 0, 0, 0, 0, 0, clock)


def open_event(attributes: bytes, tid: int) -> int:
    """Have the kernel count something of one thread, wherever it runs.

    :param attributes: of :func:`attr`.
    :returns: a file descriptor.
    :raises OSError: as perf_event_open(2) says.
    """
    descriptor = _syscall(
        ctypes.c_long(_NUMBER),
        ctypes.create_string_buffer(attributes, len(attributes)),
        ctypes.c_int(tid), ctypes.c_int(-1), ctypes.c_int(-1),
        ctypes.c_ulong(_FLAG_CLOEXEC))
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(descriptor)
