# SPDX-License-Identifier: Apache-2.0

"""A VM that answers requests among processes that burn the CPU.

The client runs in a network namespace of its own and has a reservation, so
that its requests leave at the times that it chose. The time of an answer is
taken at the VM's network device: from the moment at which the kernel passes
the request to it until the answer comes out of it. What the client waits for
besides, its own turn on a CPU included, is in the client's figures only.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import errno
import json
import math
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import time
import typing as ty
from xml.etree import ElementTree

from benchmarks import charging_rig
from benchmarks import request_client
from vsched_agent.host import schedstat
from vsched_agent.privileged import isolated
from vsched_agent.privileged import syscalls
from vsched_agent.profiling.error import hogs as profiling_hogs
from vsched_agent.tests.functional import agent_guests
from vsched_lib.model import reservation

#: The client's address, and the VM's.
CLIENT, SERVER = '198.18.64.9', '198.18.64.2'
PORT = charging_rig.ECHO_PORT
#: What the client needs of a CPU, and in which time, in microseconds.
CLIENT_US, CLIENT_PERIOD_US = 1_000, 10_000
#: The period of reservations that others have, in microseconds.
PERIOD_US = 20_000
#: Time for bandwidth that threads had when they ended to be free, in seconds.
PATIENCE_S = 10.0

# packet(7), socket(7)
_ALL_PROTOCOLS = 3
_OUTGOING = 4
_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 16 << 20
_UDP = 17
_TIME = struct.Struct('@qq')


@dataclasses.dataclass(frozen=True)
class Measured:
    """What requests and hogs got in one measurement.

    :param server_ms: by request, from the VM's network device and back; a
        lost one counts as the client's patience.
    :param client_ms: by request, as the client saw it.
    :param hog_shares: CPUs that each hog got.
    :param guest: CPUs that the VM's vCPUs got.
    :param host: CPUs that all other threads of its process got.
    :param switches_per_s: context switches of the whole host.
    """

    server_ms: Sequence[float]
    client_ms: Sequence[float]
    hog_shares: Sequence[float]
    guest: float
    host: float
    switches_per_s: float

    def figures(self, late_ms: float = PERIOD_US / 1000) -> dict[str, float]:
        """Return figures for a record.

        :param late_ms: an answer that takes longer misses its deadline
        """
        answers = times(self.server_ms)
        return {
            **answers,
            'late': sum(one > late_ms for one in self.server_ms),
            **{
                'client_' + name: answer
                for name, answer in times(self.client_ms).items()
                if name.endswith('_ms')
            },
            'hog_share': round(
                statistics.mean(self.hog_shares) if self.hog_shares else 0.0, 4
            ),
            'guest_share': round(self.guest, 4),
            'host_share': round(self.host, 4),
            'switches_per_s': round(self.switches_per_s, 1),
        }


def times(waits_ms: Sequence[float]) -> dict[str, float]:
    """Return mean, percentiles and maximum of answers' times."""
    ordered = sorted(waits_ms)
    return {
        'requests': len(ordered),
        'mean_ms': round(statistics.mean(ordered), 3),
        'p50_ms': percentile(ordered, 50),
        'p95_ms': percentile(ordered, 95),
        'p99_ms': percentile(ordered, 99),
        'max_ms': round(ordered[-1], 3),
        'lost': sum(
            one >= 1000 * request_client.PATIENCE_S for one in ordered
        ),
    }


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the least of the values that so many percent don't exceed."""
    place = math.ceil(percent * len(ordered) / 100) - 1
    return round(ordered[max(0, place)], 3)


def spread(values: Sequence[float]) -> dict[str, ty.Any]:
    """Return the figures of repeats: median, range and all of them."""
    return {
        'median': round(statistics.median(values), 4),
        'least': round(min(values), 4),
        'most': round(max(values), 4),
        'all': [round(value, 4) for value in values],
    }


def spreads(found: Sequence[Mapping[str, float]]) -> dict[str, ty.Any]:
    """Return the spread of each figure over repeats."""
    return {name: spread([one[name] for one in found]) for name in found[0]}


class Hogs:
    """Processes that burn the CPU; a context manager.

    :param count: how many.
    :param runtime_us: what each has reserved in every period; 0 for no
        reservation.
    :param period_us: the period.
    """

    def __init__(
        self, count: int, runtime_us: int = 0, period_us: int = PERIOD_US
    ) -> None:
        self._count = count
        self._reserved = runtime_us, period_us
        self._stack = contextlib.ExitStack()
        self.pids: list[int] = []

    @staticmethod
    def reserved_mcpu(
        count: int, runtime_us: int, period_us: int = PERIOD_US
    ) -> int:
        """Return what such hogs take of a host, in milli-CPU."""
        return math.ceil(
            count * reservation.MCPU_PER_CPU * runtime_us / period_us
        )

    def __enter__(self) -> ty.Self:
        try:
            for _ in range(self._count):
                hog = self._stack.enter_context(profiling_hogs.Hog())
                if self._reserved[0]:
                    reserve(hog.pid, *self._reserved)
                self.pids.append(hog.pid)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self.pids.clear()
        self._stack.close()


def reserve(tid: int, runtime_us: int, period_us: int) -> None:
    """Put a thread of ours under SCHED_DEADLINE.

    :raises OSError: when the bandwidth is not free in time
    """
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            syscalls.set_attr(
                tid,
                syscalls.Attr(
                    syscalls.SCHED_DEADLINE,
                    syscalls.FLAG_RESET_ON_FORK,
                    0,
                    0,
                    1000 * runtime_us,
                    1000 * period_us,
                    1000 * period_us,
                ),
            )
        except OSError as failure:
            # A thread that has ended keeps its bandwidth until its 0-lag
            # time.
            if failure.errno != errno.EBUSY or time.monotonic() > give_up_s:
                raise
            agent_guests.pause(0.05)
        else:
            return


class Client:
    """The client, in a network namespace of its own; a context manager.

    :param bridge: what it is connected to.
    :param address: its address.
    :param reserved_us: the runtime and the period of its reservation.
    """

    def __init__(
        self,
        bridge: str,
        address: str = CLIENT,
        reserved_us: tuple[int, int] = (CLIENT_US, CLIENT_PERIOD_US),
    ) -> None:
        self._bridge = bridge
        self._address = address
        self._reserved_us = reserved_us
        self._stack = contextlib.ExitStack()

    @staticmethod
    def command() -> tuple[str, ...]:
        """Return what runs the client's program."""
        return isolated.command(
            '-S', os.path.abspath(request_client.__file__), str(os.getpid())
        )

    def __enter__(self) -> ty.Self:
        try:
            self._process = isolated.start(
                self.command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._to = ty.cast(ty.IO[str], self._process.stdin)
            self._from = ty.cast(ty.IO[str], self._process.stdout)
            self._stack.callback(self._end)
            if self._from.readline() != 'ok\n':
                raise RuntimeError('the client did not start')
            pid = self._process.pid
            card = 'vsc%d' % (pid % 1_000_000)
            _run(
                *('ip', 'link', 'add', card, 'type', 'veth'),
                *('peer', 'name', 'eth0', 'netns', str(pid)),
            )
            # One end of a pair goes with the other.
            self._stack.callback(_run, 'ip', 'link', 'delete', card)
            _run('ip', 'link', 'set', card, 'master', self._bridge, 'up')
            inside = ('nsenter', '--target', str(pid), '--net', 'ip')
            _run(
                *(*inside, 'address', 'add'),
                *('%s/%d' % (self._address, charging_rig.PREFIX), 'dev'),
                'eth0',
            )
            _run(*inside, 'link', 'set', 'eth0', 'up')
            reserve(pid, *self._reserved_us)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()

    def ask(self, requests: int, seed: int) -> list[float]:
        """Send requests to the VM.

        :returns: how long each answer took, in milliseconds
        """
        self.send('%s %d %d %d' % (SERVER, PORT, requests, seed))
        return [float(one) for one in self.receive()]

    def send(self, line: str) -> None:
        """Send the program a line."""
        self._to.write(line + '\n')
        self._to.flush()

    def receive(self) -> ty.Any:
        """Return the program's answer.

        :raises RuntimeError: when it has ended
        """
        line = self._from.readline()
        if not line:
            raise RuntimeError('the client has ended')
        return json.loads(line)


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
        number = _number(data, PORT, 2 if inward else 0)
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


class Rig:
    """A VM that answers, and its client; a context manager.

    :param work_us: CPU time that the guest needs for an answer.
    :param vm: fields of :class:`agent_guests.Vm`.
    """

    def __init__(self, work_us: int = 1_000, **vm: ty.Any) -> None:
        self._work_us = work_us
        self._fields = vm
        self._stack = contextlib.ExitStack()
        self._asked = 0

    def __enter__(self) -> ty.Self:
        enter = self._stack.enter_context
        try:
            folder = enter(charging_rig.folder())
            bridge = enter(charging_rig.bridge())
            self.vm = enter(
                agent_guests.Vm(
                    folder,
                    'idle',
                    runs=('echo %d %d 0' % (PORT, self._work_us),),
                    networks=charging_rig.network(bridge),
                    ip='%s/%d' % (SERVER, charging_rig.PREFIX),
                    **self._fields,
                )
            )
            agent_guests.require_clock_source((self.vm,))
            self._watch = enter(Watch(_device(self.vm)))
            self._client = enter(Client(bridge))
            # The first packets ask for addresses.
            self._client.ask(3, 0)
            self._asked += 3
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    @staticmethod
    def reserved_mcpu() -> int:
        """Return what the client takes of the host, in milli-CPU."""
        return Hogs.reserved_mcpu(1, CLIENT_US, CLIENT_PERIOD_US)

    def measure(
        self, requests: int, seed: int, hogs: Sequence[int] = ()
    ) -> Measured:
        """Send requests, and see what everybody gets meanwhile.

        :param seed: of the pauses between requests
        :param hogs: threads whose share is of interest
        """
        self._watch.clear()
        first = self._asked + 1
        before, clocks = self._read(hogs), charging_rig.clocks(self.vm)
        waits_ms = self._client.ask(requests, seed)
        after, used = (
            self._read(hogs),
            charging_rig.used(clocks, charging_rig.clocks(self.vm)),
        )
        self._asked += requests
        answers_ms = self._watch.answers_ms()
        elapsed_ns = after.when_ns - before.when_ns
        return Measured(
            [
                answers_ms.get(number, 1000 * request_client.PATIENCE_S)
                for number in range(first, first + requests)
            ],
            waits_ms,
            [
                (later - earlier) / elapsed_ns
                for earlier, later in zip(
                    before.run_ns, after.run_ns, strict=True
                )
            ],
            used.guest,
            used.host,
            1e9 * (after.switches - before.switches) / elapsed_ns,
        )

    @staticmethod
    def _read(tids: Sequence[int]) -> '_Counters':
        return _Counters(
            time.monotonic_ns(),
            [schedstat.read(tid).run_ns for tid in tids],
            context_switches(),
        )


class _Counters(ty.NamedTuple):
    when_ns: int
    run_ns: list[int]
    switches: int


def context_switches() -> int:
    """Return how often the host has switched contexts since its boot."""
    for line in pathlib.Path('/proc/stat').read_text().splitlines():
        if line.startswith('ctxt '):
            return int(line.split()[1])
    raise RuntimeError('/proc/stat does not count context switches')


def _device(vm: agent_guests.Vm) -> str:
    """Return the host's end of the VM's first network card."""
    target = ElementTree.fromstring(vm.handle.XMLDesc()).find(
        'devices/interface/target'
    )
    if target is None:
        raise RuntimeError('%s has no network card' % vm.spec.name)
    return target.attrib['dev']


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def await_steady(
    read: Callable[[], ty.Any], steady_s: float, patience_s: float
) -> None:
    """Wait until something has not changed for a while.

    :param read: returns it
    :raises RuntimeError: when it changes until the end
    """
    give_up_s = time.monotonic() + patience_s
    last, since_s = read(), time.monotonic()
    while time.monotonic() - since_s < steady_s:
        if time.monotonic() > give_up_s:
            raise RuntimeError('it changes still: %r' % (last,))
        agent_guests.pause(0.2)
        now = read()
        if now != last:
            last, since_s = now, time.monotonic()
