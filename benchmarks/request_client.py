# SPDX-License-Identifier: Apache-2.0

"""A client that sends requests one after the other: a program of its own.

It makes itself a network namespace and ends with its standard input. It is
told by lines: ``ADDRESS PORT REQUESTS SEED``; it sends as many requests with
random pauses in between and answers with one line, a JSON list of how long
it waited for each answer, in milliseconds.
"""

import ctypes
import json
import os
import random
import signal
import socket
import struct
import sys
import time

#: Between an answer and the next request, in seconds, at random in between.
#: Their mean is no multiple of a period that is measured.
PAUSES_S = (0.015, 0.027)
#: An answer that takes longer is lost, in seconds, and counts as much.
PATIENCE_S = 1.0
#: A request: its number, which the answer repeats.
NUMBER = struct.Struct('!Q')

_NEW_NET = 0x40000000
_PDEATHSIG, _TIMERSLACK = 1, 29

_libc = ctypes.CDLL(None, use_errno=True)


def ask(
    channel: socket.socket,
    requests: int,
    seed: int,
    first: int = 1,
    pauses_s: tuple[float, float] = PAUSES_S,
) -> list[float]:
    """Send requests, each after the answer to the one before.

    :param channel: a connected datagram socket
    :param seed: of the pauses
    :param first: number of the first request
    :param pauses_s: the shortest and the longest pause
    :returns: how long each answer took, in milliseconds
    """
    pauses = random.Random(seed)
    found = []
    for number in range(first, first + requests):
        found.append(_answer_ms(channel, number))
        time.sleep(pauses.uniform(*pauses_s))
    return found


def _answer_ms(channel: socket.socket, number: int) -> float:
    payload = NUMBER.pack(number)
    began_s = time.monotonic()
    try:
        channel.send(payload)
    except ConnectionRefusedError:
        pass
    while True:
        left_s = PATIENCE_S - (time.monotonic() - began_s)
        if left_s <= 0:
            return PATIENCE_S * 1000
        channel.settimeout(left_s)
        try:
            data = channel.recv(64)
        except TimeoutError:
            return PATIENCE_S * 1000
        except ConnectionRefusedError:
            continue
        # Of an earlier request that counted as lost.
        if data == payload:
            return 1000 * (time.monotonic() - began_s)


def isolate(parent: int) -> bool:
    """Give this process a network namespace and end it with its parent.

    :param parent: the process that started this one
    :returns: whether that has not ended before its end could be noticed
    """
    _libc.prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return False
    _libc.prctl(_TIMERSLACK, 1)
    if _libc.unshare(_NEW_NET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    print('ok', flush=True)
    return True


def main() -> None:
    """Serve standard input; the first argument is the parent process."""
    if not isolate(int(sys.argv[1])):
        return
    first = 1
    for line in sys.stdin:
        address, port, requests, seed = line.split()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.connect((address, int(port)))
            found = ask(channel, int(requests), int(seed), first)
        first += int(requests)
        print(json.dumps(found), flush=True)


if __name__ == '__main__':
    main()
