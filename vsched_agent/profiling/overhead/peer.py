# SPDX-License-Identifier: Apache-2.0

"""The private network that calibration VMs talk over.

A bridge of this host without an address, and a peer in a network namespace
of its own. Nothing of it can be reached from elsewhere, and all of it ends
with this process.
"""

import os
import subprocess
import types
import typing as ty

from oslo_log import log as logging

from vsched_agent.privileged import isolated
from vsched_agent.privileged import network
from vsched_agent.profiling.overhead import traffic
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)

#: Addresses for measurements (RFC 2544); they are not routed outside.
PEER_ADDRESS = '198.18.0.1'
PREFIX = 24


def guest_address(number: int) -> str:
    """The address of a guest, counted from 0."""
    return '198.18.0.%d' % (number + 2)


class Network:
    """The network, from its start to its end; a context manager.

    To be made by the main thread: the kernel signals the peer when the thread
    ends that started it, not the process.
    """

    def __init__(self) -> None:
        removed = network.remove_stale_networks()
        if removed:
            LOG.warning(
                '%s of a profiler that was killed are removed',
                ', '.join(removed),
            )
        self._process = isolated.start(
            isolated.command(
                '-S', os.path.abspath(traffic.__file__), str(os.getpid())
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            self._hear()
            number = network.make_network(os.getpid(), self._process.pid)
            if number:
                raise errors.VschedError(
                    'the private network can not be made: %s'
                    % os.strerror(number),
                    errors.Code.BACKEND_UNAVAILABLE,
                )
            self._send('address %s %d' % (PEER_ADDRESS, PREFIX))
        except BaseException:
            self.close()
            raise

    @property
    def bridge(self) -> str:
        """What guests are connected to."""
        return network.bridge_of(os.getpid())

    def send(self, address: str, rate: int, burst: int, size: int) -> None:
        """Begin to send packets to a guest.

        :param rate: packets a second.
        :param burst: how many of them at once.
        :param size: bytes of each.
        """
        self._send(
            'send %s %d %d %d %d' % (address, traffic.PORT, rate, burst, size)
        )

    def quiet(self) -> None:
        """Send nothing any more."""
        self._send('quiet')

    def close(self) -> None:
        """End the peer and remove the bridge."""
        network.remove_network(os.getpid())
        isolated.end(self._process)

    def _send(self, line: str) -> None:
        stdin = ty.cast(ty.IO[bytes], self._process.stdin)
        stdin.write(line.encode() + b'\n')
        stdin.flush()
        self._hear()

    def _hear(self) -> None:
        answer = ty.cast(ty.IO[bytes], self._process.stdout).readline()
        if answer != b'ok\n':
            raise errors.VschedError(
                'the peer of the calibration VM: %s'
                % (answer.decode(errors='replace').strip() or 'it ended'),
                errors.Code.BACKEND_UNAVAILABLE,
            )

    def __enter__(self) -> ty.Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()
