# SPDX-License-Identifier: Apache-2.0

"""A process that looks like QEMU from outside, without a guest.

Its threads carry the names that QEMU gives them, and its command line names
the domain. It reads names of threads to start, one a line, and answers each
with the thread's number.
"""

import pathlib
import subprocess
import sys
import threading
import typing as ty

import fixtures


class FakeQemu(fixtures.Fixture):
    """The process, seen from outside.

    :param uuid: of the domain.
    :param vcpus: its threads ``CPU N/TCG``.
    """

    def __init__(self, uuid: str, vcpus: int = 1) -> None:
        super().__init__()
        self._uuid = uuid
        self._vcpus = vcpus

    def _setUp(self) -> None:
        # Not at the top: this module is the child's program as well.
        from vsched_agent.privileged import isolated

        self._process = isolated.start(
            isolated.command(
                '-m', __name__, '-name', 'guest=fake', '-uuid', self._uuid
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.stop)
        self.vcpu_tids = [
            self.start_thread('CPU %d/TCG' % index)
            for index in range(self._vcpus)
        ]

    @property
    def pid(self) -> int:
        return self._process.pid

    def start_thread(self, name: str) -> int:
        """Start a thread of that name; its number."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(name + '\n')
        stdin.flush()
        return int(stdout.readline())

    def stop(self) -> None:
        """End the process, if it has not ended."""
        self._process.kill()
        self._process.communicate()


def _serve(requests: ty.Iterable[str]) -> None:
    threading.stack_size(64 * 1024)
    for line in requests:
        ready = threading.Event()

        def live(
            name: str = line.rstrip('\n'), ready: threading.Event = ready
        ) -> None:
            tid = threading.get_native_id()
            pathlib.Path('/proc/self/task/%d/comm' % tid).write_text(name)
            print(tid, flush=True)
            ready.set()
            threading.Event().wait()

        threading.Thread(target=live, daemon=True).start()
        ready.wait()


if __name__ == '__main__':
    _serve(sys.stdin)
