#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Run one command of QEMU's monitor.

    tools/lab/monitor.py SOCKET COMMAND

SOCKET is QEMU's QMP socket. Prints what the command prints.
"""

import json
import socket
import sys
import typing as ty


def ask(stream: ty.IO[str], command: str, **arguments: str) -> ty.Any:
    """Return the answer to a QMP command.

    :raises RuntimeError: with QEMU's error.
    """
    json.dump({'execute': command, 'arguments': arguments}, stream)
    stream.flush()
    for line in stream:
        message = json.loads(line)
        if 'error' in message:
            raise RuntimeError(message['error']['desc'])
        if 'return' in message:
            return message['return']
    raise RuntimeError('QEMU closed the connection')


def main() -> int:
    """Run the command.

    :returns: the exit code
    """
    path, command = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile('rw', encoding='utf-8') as stream:
            stream.readline()
            ask(stream, 'qmp_capabilities')
            text = ask(
                stream, 'human-monitor-command', **{'command-line': command}
            )
    print(text, end='')
    # Such commands report failures as text.
    return 1 if text.startswith(('Error', 'error')) else 0


if __name__ == '__main__':
    sys.exit(main())
