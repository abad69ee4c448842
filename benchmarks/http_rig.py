# SPDX-License-Identifier: Apache-2.0

"""VMs that serve HTTP or SQL, and their clients."""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import json
import os
import time
import typing as ty

from benchmarks import charging_rig
from benchmarks import frame
from benchmarks import http_client
from benchmarks import isolated_client
from vsched_agent.privileged import isolated
from vsched_agent.tests.functional import agent_guests

#: The VM whose answers are timed, the one beside it, and their clients.
FIRST, SECOND = isolated_client.SERVER, '198.18.64.3'
CLIENT, SECOND_CLIENT = isolated_client.CLIENT, '198.18.64.10'
#: For a server to answer, in seconds: guests boot one after the other.
PATIENCE_S = 90.0

#: Of a request: the index of its path, milliseconds, HTTP status.
Answer = tuple[int, float, int]


class Client(isolated_client.Client):
    """A process that sends HTTP requests; a context manager."""

    @staticmethod
    def command() -> tuple[str, ...]:
        """Return what runs the client's program."""
        return isolated.command(
            *('-S', '-c'),
            'import sys; sys.path.insert(0, %r); '
            'from benchmarks import http_client; http_client.main(%d)'
            % (str(frame.ROOT), os.getpid()),
        )

    def run(self, task: http_client.Task) -> list[Answer]:
        """Send a task's requests.

        :raises RuntimeError: when a request has failed for another reason
            than that its answer was too late
        """
        found = self._run(task)
        failed = {status for _, _, status in found} - {0, 200}
        if failed:
            raise RuntimeError(
                'http://%s: status %s'
                % (task.address, ', '.join(map(str, sorted(failed))))
            )
        return found

    def _run(self, task: http_client.Task) -> list[Answer]:
        self.send(json.dumps(dataclasses.asdict(task)))
        return self._answers()

    @contextlib.contextmanager
    def running(self, task: http_client.Task) -> Iterator[list[Answer]]:
        """Send requests for as long as the context lasts.

        :returns: a list that has the answers when the context has ended
        """
        found: list[Answer] = []
        self.send(json.dumps(dataclasses.asdict(task)))
        try:
            yield found
        finally:
            self.send('')
            found += self._answers()

    def _answers(self) -> list[Answer]:
        return [
            (int(path), float(ms), int(status))
            for path, ms, status in self.receive()
        ]

    def await_page(self, address: str, path: str) -> None:
        """Wait until a server answers.

        :raises RuntimeError: when it does not in time
        """
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            answers = self._run(http_client.Task(address, [path], 1))
            if answers[0][2] == 200:
                return
            if time.monotonic() > give_up_s:
                raise RuntimeError(
                    'http://%s%s: status %d' % (address, path, answers[0][2])
                )
            agent_guests.pause(0.5)


@contextlib.contextmanager
def server(
    bridge: str, address: str, words: Sequence[str], **fields: ty.Any
) -> Iterator[agent_guests.Vm]:
    """Run a VM that serves.

    :param words: of vsched-serve, see ``tools/guest/servers/serve``
    :param fields: of :class:`agent_guests.Vm`
    """
    with (
        charging_rig.folder() as folder,
        agent_guests.Vm(
            folder,
            'idle',
            initramfs='servers.cpio',
            networks=charging_rig.network(bridge),
            ip='%s/%d' % (address, charging_rig.PREFIX),
            **fields,
        ) as vm,
    ):
        agent_guests.require_clock_source((vm,))
        vm.execute('/bin/vsched-serve', *words)
        yield vm
