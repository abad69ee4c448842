# SPDX-License-Identifier: Apache-2.0

"""The agent's end of the socket to a privileged helper.

oslo.privsep passes a socket's path on the helper's command line, which a sudo
rule can match only with wildcards. Here the helper gets one end of a connected
pair as its standard input, which sudo leaves open.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import socket
import subprocess
import threading
import typing as ty

from oslo_log import log as logging
from oslo_privsep import comm
from oslo_privsep import daemon
from oslo_privsep import priv_context

from vsched_agent.privileged import isolated

LOG = logging.getLogger(__name__)

#: Lines of a helper's standard error that are kept for error messages.
_KEPT_LINES = 5


class Channel(daemon.RootwrapClientChannel):
    """A connection to a helper, as oslo.privsep speaks it.

    :param connection: this end.
    :param context: the helper's context.
    :raises daemon.FailedToDropPrivileges: when the helper does not answer.
    """

    def __init__(
        self, connection: socket.socket, context: priv_context.PrivContext
    ) -> None:
        # Skip the library's own start of a helper.
        super(daemon.RootwrapClientChannel, self).__init__(connection, context)

    def _reader_main(self, reader: comm.Deserializer) -> None:
        # The library handles the end of the stream only. After a reset no call
        # in progress would ever return.
        super()._reader_main(ty.cast(comm.Deserializer, _until_lost(reader)))


def _until_lost(reader: comm.Deserializer) -> Iterator[ty.Any]:
    """Yield messages until the connection ends, whichever way.

    A helper that is killed before it has read a request resets it.
    """
    try:
        yield from reader
    except (OSError, ValueError) as failure:
        LOG.warning('connection to a privileged helper lost: %s', failure)


def connect(context: priv_context.PrivContext, path: str) -> Channel:
    """Connect to a helper that a service manager starts per connection.

    :param path: of the service manager's socket.
    :raises daemon.FailedToDropPrivileges: when the connection fails.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError as failure:
        connection.close()
        raise daemon.FailedToDropPrivileges(
            'the privileged helper at %s: %s' % (path, failure)
        ) from None
    return Channel(connection, context)


def spawn(context: priv_context.PrivContext, words: Sequence[str]) -> Channel:
    """Start a helper in the background.

    :param words: its command line.
    :raises daemon.FailedToDropPrivileges: when it does not start, with its
        output.
    """
    LOG.info('starting a privileged helper: %s', ' '.join(words))
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            try:
                process = isolated.start(
                    words,
                    stdin=theirs,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            except OSError as failure:
                raise daemon.FailedToDropPrivileges(
                    '%s: %s' % (words[0], failure.strerror)
                ) from None
        stderr = _StderrLogger(ty.cast(ty.IO[str], process.stderr))
        if process.wait() != 0:
            raise daemon.FailedToDropPrivileges(
                '%s: %s'
                % (
                    ' '.join(words),
                    stderr.output() or 'exit code %d' % process.returncode,
                )
            )
        return Channel(ours, context)
    except BaseException:
        ours.close()
        raise


class _StderrLogger:
    """Logs a helper's standard error while it runs."""

    def __init__(self, stream: ty.IO[str]) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._thread = threading.Thread(
            target=self._run, name='vsched-helper-stderr', daemon=True
        )
        self._thread.start()

    def output(self) -> str:
        """Return the last lines of a helper that has ended."""
        self._thread.join(1)
        return ' '.join(self._lines)

    def _run(self) -> None:
        with contextlib.closing(self._stream):
            for line in self._stream:
                text = line.rstrip()
                LOG.warning('privileged helper: %s', text)
                self._lines = [*self._lines, text][-_KEPT_LINES:]
