# SPDX-License-Identifier: Apache-2.0

"""A process that serves until it's told to end."""

import contextlib
import os
import signal
import subprocess
import tempfile
import typing as ty

import fixtures

_STOP_S = 15


class Daemon(fixtures.Fixture):
    """One process and its children; gone, and its folder too, at the end.

    :param name: for whoever reads what went wrong.
    :param command: what to run, given the folder's path.
    :param environment: added to what this process has.
    """

    def __init__(
        self,
        name: str,
        command: ty.Callable[[str], list[str]],
        environment: ty.Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._command = command
        self._environment = dict(environment or {})

    def _setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(
            prefix='vsched-test-', dir='/var/tmp', ignore_cleanup_errors=True
        )
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self._process: subprocess.Popen[bytes] | None = None
        self.addCleanup(self.stop)

    @property
    def pid(self) -> int:
        """Its process."""
        self.check()
        assert self._process is not None
        return self._process.pid

    def processes(self) -> set[int]:
        """It and its children."""
        found = set()
        for name in os.listdir('/proc'):
            with contextlib.suppress(ValueError, ProcessLookupError):
                if os.getsid(int(name)) == self.pid:
                    found.add(int(name))
        return found

    def launch(self) -> None:
        """Start it; what it says goes into the file ``log``."""
        with open(os.path.join(self.folder, 'log'), 'ab') as log:
            self._process = subprocess.Popen(
                self._command(self.folder),
                cwd=self.folder,
                env=os.environ
                | {'PYTHONWARNINGS': 'ignore'}
                | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """Refuse to go on when it does not run.

        :raises RuntimeError: when it does not, with its last words.
        """
        if not self.alive:
            raise RuntimeError(
                '%s does not run: %s' % (self.name, self.said())
            )

    def end(self) -> None:
        """Ask it to end; :meth:`stop` waits for that."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def stop(self) -> None:
        """End it with all of its children."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            # Nova's wait for a bus that may be gone by now.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def said(self) -> str:
        """What it has written, the end of it."""
        return self.all_said()[-4000:]

    def all_said(self) -> str:
        """What it has written."""
        with open(
            os.path.join(self.folder, 'log'),
            encoding='utf-8',
            errors='replace',
        ) as file:
            return file.read()
