# SPDX-License-Identifier: Apache-2.0

"""The other end of a calibration VM's network: a program of its own.

It makes itself a network namespace, sends packets as its input says, and takes
packets in without looking at them. It imports nothing of ours, ends with
its standard input, and takes the namespace along.

Its input has lines: ``address ADDRESS PREFIX``, ``send ADDRESS PORT RATE BURST
BYTES``, ``quiet``; answers each with ``ok`` or ``failed WHY``.
"""

import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time

CARD = b'eth0'
#: Where packets from guests are expected.
PORT = 9

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_PDEATHSIG, _TIMERSLACK = 1, 29
_SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x8914, 0x8916, 0x891C
_UP_RUNNING = 0x41
#: A sender that is later than this gives up what it is late by.
_LATE_S = 0.1

_libc = ctypes.CDLL(None, use_errno=True)


class Stream:
    """Packets to one guest.

    :param words: address, port, rate, burst and bytes of a packet.
    """

    def __init__(self, words: list[str]) -> None:
        port, rate, burst, size = map(int, words[1:])
        self._to = (words[0], port)
        self._burst = burst
        self._payload = bytes(size)
        self._step_s = burst / rate
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.due_s = time.monotonic()

    def send(self, now_s: float) -> None:
        """Send one burst."""
        for _ in range(self._burst):
            self._socket.sendto(self._payload, self._to)
        self.due_s += self._step_s
        if now_s - self.due_s > _LATE_S:
            self.due_s = now_s


def isolate() -> None:
    """Move into a new network namespace.

    :raises OSError: when the kernel does not let this user.
    """
    if _libc.unshare(_NEW_NET) and _libc.unshare(_NEW_USER | _NEW_NET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def set_address(address: str, prefix: int) -> None:
    """Give the card an address, and open the port there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        mask = socket.inet_ntoa(
            struct.pack('!I', (0xFFFFFFFF << (32 - prefix)) & 0xFFFFFFFF)
        )
        for request, value in ((_SET_ADDRESS, address), (_SET_MASK, mask)):
            fcntl.ioctl(
                channel,
                request,
                struct.pack(
                    '16sHH4s8x',
                    CARD,
                    socket.AF_INET,
                    0,
                    socket.inet_aton(value),
                ),
            )
        fcntl.ioctl(
            channel, _SET_FLAGS, struct.pack('16sH14x', CARD, _UP_RUNNING)
        )


def deaf_socket() -> socket.socket:
    """Takes packets in and reads none: the kernel drops them at its door.

    Without it the kernel would answer that nobody is there.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    found.bind(('', PORT))
    return found


def serve() -> None:
    """Follow the input until it ends."""
    streams: list[Stream] = []
    open_port = deaf_socket()
    waiting = b''
    while True:
        now_s = time.monotonic()
        for stream in streams:
            if stream.due_s <= now_s:
                stream.send(now_s)
        wait_s = (
            None
            if not streams
            else max(0.0, min(one.due_s for one in streams) - time.monotonic())
        )
        if not select.select([0], [], [], wait_s)[0]:
            continue
        read = os.read(0, 4096)
        if not read:
            open_port.close()
            return
        *lines, waiting = (waiting + read).split(b'\n')
        for line in lines:
            os.write(1, _obey(line.decode().split(), streams))


def _obey(words: list[str], streams: list[Stream]) -> bytes:
    try:
        if words[0] == 'address':
            set_address(words[1], int(words[2]))
        elif words[0] == 'send':
            streams.append(Stream(words[1:]))
        elif words[0] == 'quiet':
            streams.clear()
        else:
            raise ValueError('%s is no word of mine' % words[0])
    except (OSError, ValueError, IndexError) as problem:
        return b'failed %s\n' % str(problem).encode()
    return b'ok\n'


def main() -> None:
    """Begin.

    The first argument is the process that started this one; it may have
    died before it was listened for.
    """
    _libc.prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return
    _libc.prctl(_TIMERSLACK, 1)
    try:
        isolate()
    except OSError as problem:
        os.write(
            1, b'failed a network namespace: %s\n' % str(problem).encode()
        )
        return
    os.write(1, b'ok\n')
    serve()


if __name__ == '__main__':
    main()
