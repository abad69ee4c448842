# SPDX-License-Identifier: Apache-2.0

"""A virtual host of its own on the real broker, and a way to cut it off."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import os
import select
import socket
import subprocess
import threading
import time
import unittest
import urllib.parse
import uuid

import amqp

from vsched_lib.tests import ports
from vsched_lib.tests import requirements

#: Where the broker is, without a virtual host.
BROKER = os.environ.get(
    'VSCHED_TEST_RABBITMQ_URL', 'rabbit://guest:guest@127.0.0.1:5672'
)
#: A broker that runs answers sooner.
_PATIENCE_S = 60.0


def address() -> tuple[str, int]:
    """The broker's host and port."""
    host, _, port = BROKER.rpartition('@')[2].rpartition(':')
    return host, int(port)


def control(*arguments: str) -> None:
    """Run a command of the broker's operator."""
    subprocess.run(
        ('rabbitmqctl', '--quiet', *arguments),
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def make_vhost(test: unittest.TestCase) -> str:
    """A new virtual host that goes when the test ends.

    :returns: its transport URL.
    """
    user = BROKER.partition('//')[2].partition(':')[0]
    name = 'vsched-test-' + uuid.uuid4().hex
    try:
        with socket.create_connection(address(), _PATIENCE_S):
            pass
        control('add_vhost', name)
        test.addCleanup(control, 'delete_vhost', name)
        control('set_permissions', '-p', name, user, '.*', '.*', '.*')
    except (OSError, subprocess.CalledProcessError) as error:
        requirements.require(
            test,
            'rabbitmq',
            '%s %s' % (error, getattr(error, 'stderr', None) or ''),
        )
    return '%s/%s' % (BROKER, name)


def await_queue(url: str, name: str, patience_s: float = _PATIENCE_S) -> None:
    """Wait until a queue exists: the broker drops what is sent before.

    :param url: of its virtual host, as :func:`make_vhost` returns it.
    :raises AssertionError: when it does not exist by then.
    """
    host, port = address()
    ends_at = time.monotonic() + patience_s
    with amqp.Connection(
        '%s:%d' % (host, port),
        virtual_host=urllib.parse.urlsplit(url).path[1:],
    ) as connection:
        while True:
            try:
                connection.channel().queue_declare(name, passive=True)
                return
            except amqp.NotFound:
                if time.monotonic() > ends_at:
                    raise AssertionError('no queue %s' % name) from None
            time.sleep(0.02)


@contextlib.contextmanager
def new_queue(
    url: str, name: str, patience_s: float = _PATIENCE_S
) -> Iterator[Callable[[], bytes]]:
    """Declare a queue that goes with the block.

    :param url: of its virtual host, as :func:`make_vhost` returns it.
    :returns: waits for the next message in it and returns its body, or
        raises AssertionError when none comes.
    """
    host, port = address()
    with amqp.Connection(
        '%s:%d' % (host, port),
        virtual_host=urllib.parse.urlsplit(url).path[1:],
    ) as connection:
        channel = connection.channel()
        channel.queue_declare(name, exclusive=True)

        def next_body() -> bytes:
            ends_at = time.monotonic() + patience_s
            while (message := channel.basic_get(name, no_ack=True)) is None:
                if time.monotonic() > ends_at:
                    raise AssertionError('no message in %s' % name)
                time.sleep(0.02)
            body = message.body
            return body.encode() if isinstance(body, str) else bytes(body)

        yield next_body


class Door:
    """A way to the broker that can be shut, as if the broker had died.

    :ivar port: of the local end; the same each time it opens.
    """

    def __init__(self) -> None:
        self.port = ports.reserve()
        self._thread: threading.Thread | None = None

    def url(self, direct: str) -> str:
        """A transport URL that leads through here."""
        return direct.replace(
            '@%s:%d' % address(), '@127.0.0.1:%d' % self.port
        )

    def open(self) -> None:
        """Let traffic through."""
        if self._thread is not None:
            return
        listener = socket.create_server(('127.0.0.1', self.port))
        self._bell, bell = socket.socketpair()
        self._thread = threading.Thread(
            target=self._run, args=(listener, bell), daemon=True
        )
        self._thread.start()

    def shut(self) -> None:
        """End every connection and refuse new ones."""
        if self._thread is not None:
            self._bell.close()
            self._thread.join()
            self._thread = None

    @staticmethod
    def _run(listener: socket.socket, bell: socket.socket) -> None:
        peers: dict[socket.socket, socket.socket] = {}
        try:
            while True:
                ready, _, _ = select.select([listener, bell, *peers], [], [])
                if bell in ready:
                    return
                if listener in ready:
                    near = listener.accept()[0]
                    far = socket.create_connection(address())
                    peers[near], peers[far] = far, near
                for end in ready:
                    if end in peers:
                        _pump(end, peers)
        finally:
            for end in (listener, bell, *peers):
                end.close()


def _pump(
    end: socket.socket, peers: dict[socket.socket, socket.socket]
) -> None:
    try:
        chunk = end.recv(65536)
        if chunk:
            peers[end].sendall(chunk)
    except OSError:
        chunk = b''
    if not chunk:
        other = peers.pop(end)
        del peers[other]
        end.close()
        other.close()
