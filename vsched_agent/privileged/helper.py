# SPDX-License-Identifier: Apache-2.0

"""The process of a privileged helper: ``python -I -m ... NAME``.

Its standard input is a connected Unix socket, on which it serves the
protocol of oslo.privsep; the kernel identifies the client at the other end
(SO_PEERCRED). It accepts no other argument, reads no configuration file and
opens no path that its caller names. So the rule that lets a user start it
(sudoers, a systemd socket) can state the whole command line, and starting it
grants nothing but its entrypoints.
"""

import argparse
from collections.abc import Sequence
import os
import socket
import struct
import sys

from oslo_privsep import comm
from oslo_privsep import daemon

from vsched_agent import privileged
from vsched_agent.privileged import ownership

_CREDENTIALS = struct.Struct('=3i')


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one process until it closes the socket.

    :returns: the exit code; of the parent when the helper runs in the
        background.
    """
    parser = argparse.ArgumentParser(
        prog='vsched-privileged-helper', description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        '--foreground',
        action='store_true',
        help='stay the process that was started, for service managers',
    )
    parser.add_argument('name', choices=sorted(privileged.CONTEXTS))
    given = parser.parse_args(argv)
    try:
        connection = _standard_input()
        pid, _, _ = _CREDENTIALS.unpack(
            connection.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
            )
        )
        if not given.foreground and os.fork():
            return 0
        channel = comm.ServerChannel(connection)
        daemon.replace_logging(daemon.PrivsepLogHandler(channel))
        ownership.serve(pid)
        daemon.Daemon(channel, privileged.CONTEXTS[given.name]).run()
    except (OSError, daemon.FailedToDropPrivileges) as failure:
        print(
            'the helper %s does not start: %s' % (given.name, failure),
            file=sys.stderr,
        )
        return 1
    return 0


def _standard_input() -> socket.socket:
    """Move the socket away from descriptor 0.

    :raises OSError: when it is no connected Unix socket.
    """
    # Duplicate it: the library replaces descriptor 0 by /dev/null.
    try:
        connection = socket.socket(fileno=os.dup(0))
        connection.getpeername()
    except OSError:
        connection = None
    if connection is None or connection.family != socket.AF_UNIX:
        raise OSError(
            'standard input is no Unix socket; it is started by '
            'vsched-agent, not by hand'
        )
    connection.setblocking(True)
    os.set_inheritable(connection.fileno(), False)
    return connection


if __name__ == '__main__':
    sys.exit(main())
