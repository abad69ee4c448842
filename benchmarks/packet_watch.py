# SPDX-License-Identifier: Apache-2.0

"""Requests and answers as they pass a network device, with their times."""

from collections.abc import Iterator
import socket
import struct
import typing as ty

from benchmarks import charging_rig
from benchmarks import request_client

# packet(7), socket(7)
_ALL_PROTOCOLS = 3
_OUTGOING = 4
_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 16 << 20
_UDP = 17
_TIME = struct.Struct('@qq')


class Watch:
    """Sees requests and answers pass a network device; a context manager.

    :param device: its name.
    """

    def __init__(self, device: str) -> None:
        self._device = device

    def __enter__(self) -> ty.Self:
        # All protocols: to a socket of one alone the kernel does not show
        # what goes out.
        self._socket = socket.socket(
            socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL_PROTOCOLS)
        )
        try:
            self._socket.setsockopt(
                socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES
            )
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._socket.bind((self._device, _ALL_PROTOCOLS))
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._socket.close()

    def clear(self) -> None:
        """Forget what has passed until now."""
        for _ in self._packets():
            pass

    def answers_ms(self) -> dict[int, float]:
        """Return how long each answer took that has passed, by number."""
        return pair(self._packets())

    def _packets(self) -> Iterator[tuple[bytes, bool, int]]:
        while True:
            try:
                data, more, _, sender = self._socket.recvmsg(2048, 256)
            except BlockingIOError:
                return
            seconds, nanoseconds = _TIME.unpack(more[0][2][: _TIME.size])
            yield data, sender[2] == _OUTGOING, seconds * 10**9 + nanoseconds


def pair(packets: Iterator[tuple[bytes, bool, int]]) -> dict[int, float]:
    """Return how long each answer took, in milliseconds, by its number.

    :param packets: from the header of IP on, whether it went into the VM,
        and when, in nanoseconds
    """
    asked_ns: dict[int, int] = {}
    found: dict[int, float] = {}
    for data, inward, when_ns in packets:
        number = _number(data, charging_rig.ECHO_PORT, 2 if inward else 0)
        if number is None:
            continue
        if inward:
            asked_ns.setdefault(number, when_ns)
        elif number in asked_ns:
            found.setdefault(number, (when_ns - asked_ns[number]) / 1e6)
    return found


def _number(data: bytes, port: int, place: int) -> int | None:
    """Return the number in a UDP packet from or to a port.

    :param place: of the port in the header
    """
    if len(data) < 20 or data[0] >> 4 != 4 or data[9] != _UDP:
        return None
    body = data[4 * (data[0] & 15) :]
    if len(body) < 8 + request_client.NUMBER.size:
        return None
    if int.from_bytes(body[place : place + 2], 'big') != port:
        return None
    return int(request_client.NUMBER.unpack_from(body, 8)[0])
