# SPDX-License-Identifier: Apache-2.0

"""Processes that use all the CPU time they get.

Each has one thread and ends with its parent, however that ends.
"""

import os
import resource
import subprocess
import types
import typing as ty

from vsched_agent.privileged import isolated

#: A hog that is forgotten ends after as much CPU time, in seconds.
LIMIT_S = 7200

# PR_SET_PDEATHSIG is 1, SIGKILL 9. The parent may have died before the call:
# then the hog has another one by now.
_SOURCE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit()
os.write(1, b'+')
os.close(1)
while True:
    pass
"""


class Hog:
    """One hog, from its start to its end; a context manager.

    To be started by the main thread: the kernel signals the hog when the
    thread ends that started it, not the process.

    :raises RuntimeError: when it does not start.
    """

    def __init__(self) -> None:
        self._process = isolated.start(
            isolated.command('-S', '-c', _SOURCE, str(os.getpid())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        try:
            resource.prlimit(self.pid, resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
            stdout = ty.cast(ty.IO[bytes], self._process.stdout)
            if stdout.read(1) != b'+':
                raise RuntimeError('a CPU hog did not start')
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its process, and its only thread."""
        return self._process.pid

    def close(self) -> None:
        """End it; what it held of the CPUs is free when this returns."""
        isolated.end(self._process)

    def __enter__(self) -> ty.Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()
