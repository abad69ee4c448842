# SPDX-License-Identifier: Apache-2.0

"""How many streams at a constant rate a VM serves without gaps."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import socket
import statistics
import struct
import time
import typing as ty

from benchmarks import charging_rig
from benchmarks import frame
from benchmarks import isolated_client
from benchmarks import needs
from benchmarks import request_rig
from benchmarks import scheduling
from vsched_agent.tests.functional import agent_guests

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

#: The VM that serves, and each of the others, in every 20 ms.
RUNTIME_US = 8_000
HOGS, HOG_US = 7, 2_800
#: A stream: packets per second, their bytes, and how many a client has to
#: have before it plays.
RATE, BYTES, BUFFER = 50, 1_400, 2
#: A client is served well if it has no more gaps than that.
MOST_GAPS = 1
#: Numbers of clients that are tried, by bisection.
LADDER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 26, 30, 36, 42, 50, 60, 70)
FIRST_PORT = 9_000
#: Of the stream that nothing but the agent takes notice of.
BASE_PORT = FIRST_PORT - 1
#: The time that the agent takes to know the VM's requests, the time until all
#: streams run, and the time that counts, in seconds.
KNOWN_S, WARM_UP_S = 15.0, 4.0
LENGTH_S, QUICK_LENGTH_S = 12.0, 6.0
REPEATS, QUICK_REPEATS = 5, 1
SEED = 22

_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 16 << 20
_TIME = struct.Struct('@qq')

DEFAULT, FIXED, SHAPED = VARIANTS = ('default', 'fixed', 'shaped')
_WAYS = {
    DEFAULT: scheduling.Way.DEFAULT,
    FIXED: scheduling.Way.FIXED,
    SHAPED: scheduling.Way.SHAPED,
}

ABOUT = frame.About(
    'How many streams a VM serves without gaps',
    'A VM sends streams of 50 packets of 1400 bytes a second (0.56 Mb/s), '
    'each by a process of its own; a packet that would be more than 100 ms '
    'late is left out. Seven VMs of one vCPU burn all the CPU time that they '
    'get, on two CPUs. A client plays when it has two packets, one every '
    '20 ms; where the next one is not there it has a gap and waits until it '
    'has two again. A number of clients is served if each has at most one '
    'gap in 12 s. ``default``: no VM has a reservation. ``fixed``: all have '
    'one of the backend ``deadline``, 8 ms and 2.8 ms in every 20 ms, with '
    '``comm_aware`` off. ``shaped``: with it on. I/O threads are treated as '
    'by default.\n\n'
    'One stream more is sent all the time and not counted, so that the VM '
    'communicates without a break.\n\n'
    'Packets have the time at which the kernel took them from the VM, so '
    'that no client waits for a CPU. The largest number that is served is '
    'searched by bisection, anew in each repeat and for each variant; '
    'repeats have the variants in a shuffled order.',
    (
        frame.Paper(
            'clients_ratio',
            'Govindan et al., figure 8',
            '18 to 60 clients (3.33)',
            'streams of 3 Mb/s with buffers of 6 MB, for 20 minutes, under '
            'Xen; default scheduler to communication-aware',
        ),
    ),
    {
        'clients_ratio': 'clients that are served with divided periods over '
        'those without reservations, within a repeat, median',
        'clients_default': 'clients that are served without reservations, '
        'median',
        'clients_fixed': 'the same with undivided periods',
        'clients_shaped': 'the same with divided periods',
    },
    targets=(frame.at_least('clients_ratio', 3.3, '', 'issue 19'),),
    exercises=('tools/guest',),
)


def run(quick: bool) -> frame.Run:
    """All variants in each repeat, in a new order each time."""
    needs.two_cpus()
    needs.guests()
    length_s = QUICK_LENGTH_S if quick else LENGTH_S
    found: dict[str, list[dict[str, ty.Any]]] = {name: [] for name in VARIANTS}
    with contextlib.ExitStack() as stack:
        hogs = stack.enter_context(scheduling.HogVms(HOGS))
        folder = stack.enter_context(charging_rig.folder())
        bridge = stack.enter_context(charging_rig.bridge())
        vm = stack.enter_context(
            agent_guests.Vm(
                folder,
                networks=charging_rig.network(bridge),
                ip='%s/%d' % (isolated_client.SERVER, charging_rig.PREFIX),
            )
        )
        agent_guests.require_clock_source((vm,))
        # A VM that communicates at times only is divided at times only.
        stack.enter_context(_sockets((BASE_PORT,)))
        _send(vm, (BASE_PORT,), 0)
        stack.enter_context(scheduling.agent(0))
        scheduler = scheduling.Scheduler(
            [
                scheduling.Member(vm, RUNTIME_US),
                *(scheduling.Member(one, HOG_US, False) for one in hogs.vms),
            ]
        )
        for _, name in scheduling.rounds(
            VARIANTS, QUICK_REPEATS if quick else REPEATS, SEED
        ):
            scheduler.change(_WAYS[name])
            agent_guests.pause(KNOWN_S)
            found[name].append(_search(vm, length_s))
    for name, repeated in found.items():
        yield frame.Variant(
            name,
            {
                'clients': request_rig.spread(
                    [one['clients'] for one in repeated]
                ),
                'tried': [one['tried'] for one in repeated],
            },
        )
    return metrics(found)


def _search(vm: agent_guests.Vm, length_s: float) -> dict[str, ty.Any]:
    tried: dict[int, int] = {}

    def serves(clients: int) -> bool:
        tried[clients] = max(_gaps(vm, clients, length_s))
        return tried[clients] <= MOST_GAPS

    clients = largest(LADDER, serves)
    return {'clients': clients, 'tried': tried}


def largest(ladder: Sequence[int], serves: Callable[[int], bool]) -> int:
    """Return the largest number that is served, by bisection; 0 for none.

    :param ladder: the numbers, ascending
    """
    low, high = 0, len(ladder)
    while low < high:
        middle = (low + high) // 2
        if serves(ladder[middle]):
            low = middle + 1
        else:
            high = middle
    return ladder[low - 1] if low else 0


def _gaps(vm: agent_guests.Vm, clients: int, length_s: float) -> list[int]:
    """Return how many gaps each client has."""
    ports = range(FIRST_PORT, FIRST_PORT + clients)
    with _sockets(ports) as channels:
        # They end by themselves, after what counts.
        _send(vm, ports, round(WARM_UP_S + length_s) + 1)
        agent_guests.pause(WARM_UP_S)
        began_s = time.time()
        agent_guests.pause(length_s)
        ended_s = time.time()
        found = [
            gaps(
                [
                    when_s - began_s
                    for when_s in _arrivals(channel)
                    if began_s <= when_s <= ended_s
                ],
                ended_s - began_s,
            )
            for channel in channels
        ]
        # Nothing that is under way may reach the next clients.
        agent_guests.pause(3.0)
    return found


def _send(vm: agent_guests.Vm, ports: Sequence[int], seconds: int) -> None:
    """Have the VM send a stream to each port.

    :param seconds: for how long; 0 until it ends
    """
    # One command for all: the guest's agent takes its time for each.
    vm.execute(
        '/bin/sh',
        '-c',
        'for PORT in $(seq %d %d); do '
        'vsched-load send %s $PORT %d 1 %d %d >/dev/null & done; wait'
        % (ports[0], ports[-1], charging_rig.ADDRESS, RATE, BYTES, seconds),
    )


@contextlib.contextmanager
def _sockets(ports: Sequence[int]) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        channels = []
        for port in ports:
            channel = stack.enter_context(
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            )
            channel.setsockopt(
                socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES
            )
            channel.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            channel.bind((charging_rig.ADDRESS, port))
            channel.setblocking(False)
            channels.append(channel)
        yield channels


def _arrivals(channel: socket.socket) -> Iterator[float]:
    """Yield when each packet came that waits, in seconds since the epoch."""
    while True:
        try:
            _, more, _, _ = channel.recvmsg(16, 256)
        except BlockingIOError:
            return
        seconds, nanoseconds = _TIME.unpack(more[0][2][: _TIME.size])
        yield seconds + nanoseconds / 1e9


def gaps(
    arrivals_s: Sequence[float],
    length_s: float,
    rate: float = RATE,
    buffered: int = BUFFER,
) -> int:
    """Return how many gaps a client has.

    :param arrivals_s: when packets came, from when the client joined on
    :param length_s: how long it listens
    :param rate: packets per second that it plays
    :param buffered: how many it waits for before it plays, at the start and
        after each gap
    """
    # The kernel may give two packets times in another order.
    arrivals_s = sorted(arrivals_s)
    found, first = 0, 0
    while first + buffered <= len(arrivals_s):
        start_s = arrivals_s[first + buffered - 1]
        late = next(
            (
                place
                for place in range(first, len(arrivals_s))
                if arrivals_s[place] > start_s + (place - first) / rate
            ),
            None,
        )
        if late is None:
            # What it has is played; was there to be more?
            rest_s = start_s + (len(arrivals_s) - first) / rate
            return found + (rest_s < length_s)
        found += 1
        first = late
    # It waits until the end.
    return max(1, found)


def metrics(
    found: Mapping[str, Sequence[Mapping[str, ty.Any]]],
) -> dict[str, float]:
    """Return the headline numbers.

    :param found: what was served in each repeat, by variant
    """
    clients = {
        name: [one['clients'] for one in repeated]
        for name, repeated in found.items()
    }
    return {
        # Where none is served the ratio has no value: as if it were one.
        'clients_ratio': round(
            statistics.median(
                ours / max(1, default)
                for ours, default in zip(
                    clients[SHAPED], clients[DEFAULT], strict=True
                )
            ),
            3,
        ),
        **{
            'clients_' + name: statistics.median(clients[name])
            for name in VARIANTS
        },
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The numbers of clients by variant."""
    axes = figure.add_subplot()
    spread = [record.variants[name]['clients'] for name in VARIANTS]
    axes.bar(
        VARIANTS,
        [one['median'] for one in spread],
        yerr=[
            [one['median'] - one['least'] for one in spread],
            [one['most'] - one['median'] for one in spread],
        ],
    )
    axes.set_ylabel('clients served')
