# SPDX-License-Identifier: Apache-2.0

"""Guests that move data, what they and the host use for it, and hogs."""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import os
import pathlib
import random
import socket
import struct
import subprocess
import tempfile
import threading
import time
import typing as ty
from xml.etree import ElementTree

from vsched_agent.accounting import direct
from vsched_agent.host import schedstat
from vsched_agent.privileged import syscalls
from vsched_agent.profiling.error import hogs as profiling_hogs
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests.functional import agent_guests

#: The host's end of the private network, and how wide that is.
ADDRESS, PREFIX = '198.18.64.1', 24
ECHO_PORT, SINK_PORT = 7, 9
DISK_BYTES = 64 << 20
#: Between two requests, in seconds, at random in between.
_PAUSES_S = (0.015, 0.027)
#: An answer that takes longer counts as much, in seconds.
PATIENCE_S = 1.0
_SO_TIMESTAMPNS = 35


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """Where disks and consoles are kept; on a real file system."""
    with tempfile.TemporaryDirectory(dir='/var/tmp') as path:
        yield path


def disk(path: str) -> str:
    """A disk's image: of a sparse one nothing would be read."""
    name = os.path.join(path, 'disk-%d.img' % random.getrandbits(32))
    chunk = os.urandom(1 << 20)
    with open(name, 'xb') as file:
        for _ in range(DISK_BYTES >> 20):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return name


@contextlib.contextmanager
def bridge() -> Iterator[str]:
    """A private bridge with the host on it."""
    name = 'vsb%d' % (os.getpid() % 1_000_000)
    _ip('link', 'add', name, 'type', 'bridge')
    try:
        _ip('address', 'add', '%s/%d' % (ADDRESS, PREFIX), 'dev', name)
        _ip('link', 'set', name, 'up')
        yield name
    finally:
        _ip('link', 'delete', name)


def _ip(*words: str) -> None:
    subprocess.run(('ip', *words), check=True, capture_output=True)


@contextlib.contextmanager
def hogs(count: int, runtime_us: int = 0) -> Iterator[None]:
    """Processes that burn the CPU.

    :param runtime_us: what each is promised in every 20 ms, as another
        instance would be; 0 for nothing.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            hog = stack.enter_context(profiling_hogs.Hog())
            if runtime_us:
                syscalls.set_attr(
                    hog.pid,
                    syscalls.Attr(
                        syscalls.SCHED_DEADLINE,
                        syscalls.FLAG_RESET_ON_FORK,
                        0,
                        0,
                        runtime_us * 1000,
                        20_000_000,
                        20_000_000,
                    ),
                )
        yield


@dataclasses.dataclass(frozen=True)
class Use:
    """What a guest and the host used for it in one second.

    :param guest: CPUs that its vCPUs got.
    :param host: CPUs that all other threads of its process got.
    """

    guest: float
    host: float


def watch(vm: agent_guests.Vm, seconds: int) -> list[Use]:
    """Look at a guest once a second."""
    found, before = [], clocks(vm)
    for _ in range(seconds):
        agent_guests.pause(1.0)
        now = clocks(vm)
        found.append(used(before, now))
        before = now
    return found


def used(before: tuple[int, int, int], now: tuple[int, int, int]) -> Use:
    """What was used between two readings of :func:`clocks`."""
    length_ns, guest_ns, all_ns = (
        later - earlier for earlier, later in zip(before, now, strict=True)
    )
    return Use(guest_ns / length_ns, (all_ns - guest_ns) / length_ns)


def clocks(vm: agent_guests.Vm) -> tuple[int, int, int]:
    """Now, what its vCPUs ran, and what all of its threads ran, in ns."""
    guest_ns = sum(schedstat.read(tid).run_ns for tid in vm.vcpu_tids)
    return (time.monotonic_ns(), guest_ns, direct.process_ns(vm.pid) or 0)


def windows(values: Sequence[float], length: int) -> list[float]:
    """Means over every so many values in a row."""
    length = min(length, len(values))
    return [
        sum(values[start : start + length]) / length
        for start in range(len(values) - length + 1)
    ]


def requests_done(vm: agent_guests.Vm) -> int:
    """Reads and writes that the guest's first disk has done."""
    reads, _, writes, _, _ = vm.handle.blockStats('vda')
    return int(reads) + int(writes)


def packets_sent(vm: agent_guests.Vm) -> int:
    """Packets that the guest's first card has sent."""
    card = ElementTree.fromstring(vm.handle.XMLDesc()).find(
        'devices/interface/target'
    )
    if card is None:
        raise RuntimeError('%s has no card' % vm.spec.name)
    return int(
        pathlib.Path(
            '/sys/class/net/%s/statistics/rx_packets' % card.get('dev')
        ).read_text()
    )


def network(name: str) -> tuple[domain_xml.Network, ...]:
    """A card on a bridge."""
    return (domain_xml.Network(name),)


class Sink:
    """Takes packets in and forgets them."""

    def __enter__(self) -> ty.Self:
        # Nobody reads: what is too much is dropped without a word.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((ADDRESS, SINK_PORT))
        return self

    def __exit__(self, *problem: object) -> None:
        self._socket.close()


def responses_ms(address: str, seconds: float) -> list[float]:
    """How long a guest takes to answer, request by request.

    Its answer's time is the kernel's, when the packet came out of the
    guest: how long this process waits for a CPU is none of it.
    """
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        channel.bind((ADDRESS, 0))
        channel.connect((address, ECHO_PORT))
        end_s = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end_s:
            number += 1
            found.append(_answer_ms(channel, number))
            threading.Event().wait(random.uniform(*_PAUSES_S))
    return found


def _answer_ms(channel: socket.socket, number: int) -> float:
    began_ns = time.time_ns()
    with contextlib.suppress(ConnectionRefusedError):
        channel.send(struct.pack('!Q', number))
    while True:
        left_s = PATIENCE_S - (time.time_ns() - began_ns) / 1e9
        if left_s <= 0:
            return PATIENCE_S * 1000
        channel.settimeout(left_s)
        try:
            data, more, _, _ = channel.recvmsg(64, 256)
        except TimeoutError:
            return PATIENCE_S * 1000
        except ConnectionRefusedError:
            continue
        if struct.unpack('!Q', data)[0] == number:
            break
    seconds, nanoseconds = struct.unpack('@qq', more[0][2][:16])
    return float(seconds * 10**9 + nanoseconds - began_ns) / 1e6
