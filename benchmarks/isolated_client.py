# SPDX-License-Identifier: Apache-2.0

"""The client of a VM, in a network namespace of its own.

It has a reservation, so that its requests leave at the times that it chose.
"""

import contextlib
import json
import os
import subprocess
import typing as ty

from benchmarks import charging_rig
from benchmarks import request_client
from benchmarks import thread_reservation
from vsched_agent.privileged import isolated

#: The client's address, and the VM's.
CLIENT, SERVER = '198.18.64.9', '198.18.64.2'
#: What the client needs of a CPU, and in which time, in microseconds.
CLIENT_US, CLIENT_PERIOD_US = 1_000, 10_000


class Client:
    """The client, in a network namespace of its own; a context manager.

    :param bridge: what it is connected to.
    :param address: its address.
    :param reserved_us: the runtime and the period of its reservation.
    """

    def __init__(
        self,
        bridge: str,
        address: str = CLIENT,
        reserved_us: tuple[int, int] = (CLIENT_US, CLIENT_PERIOD_US),
    ) -> None:
        self._bridge = bridge
        self._address = address
        self._reserved_us = reserved_us
        self._stack = contextlib.ExitStack()

    @staticmethod
    def command() -> tuple[str, ...]:
        """Return what runs the client's program."""
        return isolated.command(
            '-S', os.path.abspath(request_client.__file__), str(os.getpid())
        )

    def __enter__(self) -> ty.Self:
        try:
            self._process = isolated.start(
                self.command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._to = ty.cast(ty.IO[str], self._process.stdin)
            self._from = ty.cast(ty.IO[str], self._process.stdout)
            self._stack.callback(self._end)
            if self._from.readline() != 'ok\n':
                raise RuntimeError('the client did not start')
            pid = self._process.pid
            card = 'vsc%d' % (pid % 1_000_000)
            _run(
                *('ip', 'link', 'add', card, 'type', 'veth'),
                *('peer', 'name', 'eth0', 'netns', str(pid)),
            )
            # One end of a pair goes with the other.
            self._stack.callback(_run, 'ip', 'link', 'delete', card)
            _run('ip', 'link', 'set', card, 'master', self._bridge, 'up')
            inside = ('nsenter', '--target', str(pid), '--net', 'ip')
            _run(
                *(*inside, 'address', 'add'),
                *('%s/%d' % (self._address, charging_rig.PREFIX), 'dev'),
                'eth0',
            )
            _run(*inside, 'link', 'set', 'eth0', 'up')
            thread_reservation.reserve(pid, *self._reserved_us)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()

    def ask(self, requests: int, seed: int) -> list[float]:
        """Send requests to the VM.

        :returns: how long each answer took, in milliseconds
        """
        self.send(
            '%s %d %d %d' % (SERVER, charging_rig.ECHO_PORT, requests, seed)
        )
        return [float(one) for one in self.receive()]

    def send(self, line: str) -> None:
        """Send the program a line."""
        self._to.write(line + '\n')
        self._to.flush()

    def receive(self) -> ty.Any:
        """Return the program's answer.

        :raises RuntimeError: when it has ended
        """
        line = self._from.readline()
        if not line:
            raise RuntimeError('the client has ended')
        return json.loads(line)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
