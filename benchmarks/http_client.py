# SPDX-License-Identifier: Apache-2.0

"""A client that sends HTTP requests: a process of its own.

It makes itself a network namespace and ends with its standard input. Each
line is a JSON object, the fields of :class:`Task`; the answer is one line, a
JSON list of [path's index, milliseconds, HTTP status] for each request.
"""

from collections.abc import Sequence
import dataclasses
import heapq
import itertools
import json
import random
import resource
import selectors
import socket
import sys
import time
import typing as ty

from benchmarks import request_client

#: An answer that takes longer is lost, in seconds, and counts as much.
PATIENCE_S = 5.0
_CHUNK = 1 << 18


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What the client does.

    :param address: of the HTTP server.
    :param paths: of which each request has one at random.
    :param requests: how many; 0 for as many as there are until the next
        line comes.
    :param sessions: how many requests may be under way at a time.
    :param pause_s: between an answer and the session's next request, the
        shortest and the longest, in seconds.
    :param interval_s: a session's requests are due in this interval instead,
        and their times count from when they were due; 0 for pauses.
    :param seed: of paths and pauses.
    """

    address: str
    paths: Sequence[str]
    requests: int = 0
    sessions: int = 1
    pause_s: tuple[float, float] = (0.0, 0.0)
    interval_s: float = 0.0
    seed: int = 0


class Response:
    """Takes an HTTP response in as it comes.

    :ivar status: the status; 0 until the headers are complete.
    :ivar complete: whether all of it has come.
    """

    def __init__(self) -> None:
        self.status = 0
        self.complete = False
        self._head = b''
        self._left: int | None = None

    def feed(self, data: bytes) -> None:
        """Take in what came next.

        :raises ValueError: on what is no response that states its length
        """
        if self._left is None:
            self._head += data
            head, end, data = self._head.partition(b'\r\n\r\n')
            if not end:
                return
            first, *lines = head.decode('ascii').split('\r\n')
            self.status = int(first.split()[1])
            fields = dict(line.lower().split(':', 1) for line in lines)
            self._left = int(fields.get('content-length', 'missing'))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError('more than one response')
        self.complete = self._left == 0


class _Session:
    """One request at a time."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.channel: socket.socket | None = None
        self.response = Response()
        self.began_s = 0.0
        self.path = 0

    def begin(self, path: int, due_s: float) -> None:
        self.path, self.began_s = path, due_s
        self.response = Response()
        if self.channel is None:
            self.channel = socket.create_connection(
                (self._task.address, 80), PATIENCE_S
            )
            self.channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.channel.setblocking(False)
        self.channel.send(
            b'GET %s HTTP/1.1\r\nHost: guest\r\n\r\n'
            % self._task.paths[path].encode()
        )

    def receive(self) -> None:
        """Take in what has come.

        :raises OSError: when the connection has ended
        """
        if self.channel is None:
            raise ConnectionError('not connected')
        data = self.channel.recv(_CHUNK)
        if not data:
            raise ConnectionError('ended by the server')
        self.response.feed(data)

    def end(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None


class Loop:
    """Runs a task.

    :param interrupted: tells whether to end before all requests are sent.
    """

    def __init__(self, task: Task, interrupted: ty.Callable[[], bool]) -> None:
        self._task = task
        self._interrupted = interrupted
        self._random = random.Random(task.seed)
        self._selector = selectors.DefaultSelector()
        self._order = itertools.count()
        # (when due, order, session)
        self._due: list[tuple[float, int, _Session]] = []
        self._busy: set[_Session] = set()
        self._sent = 0
        self.found: list[tuple[int, float, int]] = []

    def run(self) -> list[tuple[int, float, int]]:
        """Send the requests.

        :returns: path, milliseconds and status of each; 0 where there was no
            answer
        """
        began_s = time.monotonic()
        sessions = [_Session(self._task) for _ in range(self._task.sessions)]
        for one in sessions:
            self._later(one, began_s - self._task.interval_s)
        while (self._due or self._busy) and not self._interrupted():
            self._begin_due()
            for key, _ in self._selector.select(self._wait_s()):
                self._receive(key.data)
            self._lose()
        for one in sessions:
            one.end()
        self._selector.close()
        return self.found

    def _wait_s(self) -> float:
        wait_s = 0.1
        if self._due:
            wait_s = min(wait_s, self._due[0][0] - time.monotonic())
        return max(0.0, wait_s)

    def _later(self, session: _Session, last_s: float) -> None:
        """Have a session send its next request.

        :param last_s: when its last one was due
        """
        if self._task.requests and self._sent >= self._task.requests:
            return
        self._sent += 1
        due_s = (
            last_s + self._task.interval_s
            if self._task.interval_s
            else time.monotonic() + self._random.uniform(*self._task.pause_s)
        )
        heapq.heappush(self._due, (due_s, next(self._order), session))

    def _begin_due(self) -> None:
        # One that fails at once is due again at a later time.
        now_s = time.monotonic()
        while self._due and self._due[0][0] <= now_s:
            due_s, _, session = heapq.heappop(self._due)
            # Without an interval a request is due when it is sent.
            if not self._task.interval_s:
                due_s = time.monotonic()
            try:
                session.begin(
                    self._random.randrange(len(self._task.paths)), due_s
                )
            except OSError:
                session.end()
                self._done(session, 0)
                continue
            self._busy.add(session)
            self._selector.register(
                ty.cast(socket.socket, session.channel),
                selectors.EVENT_READ,
                session,
            )

    def _receive(self, session: _Session) -> None:
        try:
            session.receive()
        except (OSError, ValueError):
            self._stop(session)
            session.end()
            self._done(session, 0)
            return
        if session.response.complete:
            self._stop(session)
            self._done(session, session.response.status)

    def _stop(self, session: _Session) -> None:
        self._busy.discard(session)
        self._selector.unregister(ty.cast(socket.socket, session.channel))

    def _done(self, session: _Session, status: int) -> None:
        elapsed_s = time.monotonic() - session.began_s
        if elapsed_s > PATIENCE_S:
            status = 0
        self.found.append(
            (
                session.path,
                1000 * (elapsed_s if status else PATIENCE_S),
                status,
            )
        )
        self._later(session, session.began_s)

    def _lose(self) -> None:
        late_s = time.monotonic() - PATIENCE_S
        for one in [one for one in self._busy if one.began_s < late_s]:
            self._stop(one)
            one.end()
            self._done(one, 0)


def main(parent: int) -> None:
    """Serve standard input.

    :param parent: the process that started this one
    """
    if not request_client.isolate(parent):
        return
    # A connection for each session.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    while line := sys.stdin.readline():
        task = Task(**json.loads(line))
        found = Loop(
            task,
            (lambda: False)
            if task.requests
            else lambda: bool(selector.select(0)),
        ).run()
        print(json.dumps(found), flush=True)
        if not task.requests:
            # The line that has ended it.
            sys.stdin.readline()
