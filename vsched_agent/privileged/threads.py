# SPDX-License-Identifier: Apache-2.0

"""Read properties of a thread from /proc that sched_getattr(2) lacks."""

import ctypes
import errno
import os
import types
import typing as ty

#: State of a thread that runs or waits for a CPU.
RUNNABLE = 'R'
#: States of a thread that has ended.
DEAD = frozenset('XZ')

# PyDLL keeps the interpreter lock: see syscalls.
_pread = ctypes.PyDLL(None, use_errno=True).pread
_pread.restype = ctypes.c_ssize_t
_pread.argtypes = (
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_long,
)
_ROOM = 8192


def state(tid: int) -> str:
    """Return the letter of a thread's state.

    :param tid: the thread.
    :raises ProcessLookupError: when it has ended.
    """
    with View(tid) as view:
        return view.state()


def leader(tid: int) -> int:
    """Return the main thread of a thread's process.

    :param tid: the thread.
    :raises ProcessLookupError: when it has ended.
    """
    try:
        with open('/proc/%d/status' % tid, 'rb') as status:
            for line in status:
                if line.startswith(b'Tgid:'):
                    return int(line.split()[1])
    except FileNotFoundError:
        pass
    raise ProcessLookupError(errno.ESRCH, 'thread %d is dead' % tid)


class View:
    """One thread's files, opened once for fast reads.

    :param tid: the thread.
    :raises ProcessLookupError: when it has ended.
    """

    def __init__(self, tid: int) -> None:
        self._tid = tid
        self._files: dict[str, int] = {}
        self._buffer = ctypes.create_string_buffer(_ROOM)
        try:
            for name in ('stat', 'schedstat', 'sched'):
                self._open(name)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ty.Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def state(self) -> str:
        """Return the letter of the thread's state in /proc/TID/stat.

        :raises ProcessLookupError: when it has ended.
        """
        # The name before it may contain parentheses.
        letter = self._read('stat').rpartition(b')')[2][1:2].decode()
        if letter in DEAD:
            raise ProcessLookupError(
                errno.ESRCH, 'thread %d is dead' % self._tid
            )
        return letter

    def run_ns(self) -> int:
        """Return the thread's CPU time, as last accounted by the kernel.

        :raises ProcessLookupError: when it has ended.
        """
        return int(self._read('schedstat').split()[0])

    def left_ns(self) -> int | None:
        """Return what is left of the thread's deadline budget.

        :returns: as last accounted by the kernel; negative when overrun; None
            when the kernel does not show it.
        :raises ProcessLookupError: when it has ended.
        """
        return self._number(b'dl.runtime')

    def deadline_ns(self) -> int | None:
        """Return a thread's absolute deadline, by the kernel's clock.

        :returns: as last accounted by the kernel; None when the kernel does
            not show it.
        :raises ProcessLookupError: when it has ended.
        """
        return self._number(b'dl.deadline')

    def _number(self, name: bytes) -> int | None:
        if 'sched' not in self._files:
            return None
        text = self._read('sched')
        start = text.find(name)
        if start < 0:
            return None
        return int(text[text.index(b':', start) + 1 :].split(None, 1)[0])

    def _open(self, name: str) -> None:
        path = '/proc/%d/%s' % (self._tid, name)
        try:
            self._files[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Kernels without CONFIG_SCHED_DEBUG have no sched.
            if name != 'sched':
                raise ProcessLookupError(errno.ESRCH, path) from None
        except PermissionError:
            if name != 'sched':
                raise

    def _read(self, name: str) -> bytes:
        length = _pread(self._files[name], self._buffer, _ROOM, 0)
        if length < 0:
            number = ctypes.get_errno()
            raise OSError(
                number, os.strerror(number), '/proc/%d/%s' % (self._tid, name)
            )
        return self._buffer.raw[:length]
