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

"""What /proc says about one thread that sched_getattr(2) does not."""

import ctypes
import errno
import os
import types
import typing as ty

#: States of a thread that waits for a CPU or has one.
RUNNABLE = 'R'
#: States of a thread that holds nothing any more.
DEAD = frozenset('XZ')

# PyDLL keeps the interpreter lock: see syscalls.
_pread = ctypes.PyDLL(None, use_errno=True).pread
_pread.restype = ctypes.c_ssize_t
_pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                   ctypes.c_long)
_ROOM = 8192


def state(tid: int) -> str:
    """The letter of a thread's state.

    :param tid: the thread.
    :raises ProcessLookupError: when it is gone or dead.
    """
    with View(tid) as view:
        return view.state()


class View:
    """One thread's files, opened once to be read quickly.

    :param tid: the thread.
    :raises ProcessLookupError: when it is gone.
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

    def __exit__(self, kind: type[BaseException] | None,
                 value: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def state(self) -> str:
        """The letter of the thread's state in /proc/TID/stat.

        :raises ProcessLookupError: when it is gone or dead.
        """
        # The name before it may hold anything, parentheses included.
        letter = self._read('stat').rpartition(b')')[2][1:2].decode()
        if letter in DEAD:
            raise ProcessLookupError(
                errno.ESRCH, 'thread %d is dead' % self._tid)
        return letter

    def run_ns(self) -> int:
        """CPU time the thread has used, as of the kernel's last look.

        :raises ProcessLookupError: when it is gone.
        """
        return int(self._read('schedstat').split()[0])

    def left_ns(self) -> int | None:
        """What is left of the thread's deadline budget.

        :returns: as of the kernel's last look; negative when it is
            overdrawn; None when the kernel does not tell.
        :raises ProcessLookupError: when it is gone.
        """
        return self._number(b'dl.runtime')

    def deadline_ns(self) -> int | None:
        """The absolute deadline of a deadline thread, by the kernel's clock.

        :returns: as of the kernel's last look; None when the kernel does
            not tell.
        :raises ProcessLookupError: when it is gone.
        """
        return self._number(b'dl.deadline')

    def _number(self, name: bytes) -> int | None:
        if 'sched' not in self._files:
            return None
        text = self._read('sched')
        start = text.find(name)
        if start < 0:
            return None
        return int(text[text.index(b':', start) + 1:].split(None, 1)[0])

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
            raise OSError(number, os.strerror(number),
                          '/proc/%d/%s' % (self._tid, name))
        return self._buffer.raw[:length]
