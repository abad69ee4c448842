# SPDX-License-Identifier: Apache-2.0

"""A VM that answers requests among processes that burn the CPU.

The client runs in a network namespace of its own and has a reservation, so
that its requests leave at the times that it chose. The time of an answer is
taken at the VM's network device: from the moment at which the kernel passes
the request to it until the answer comes out of it. What the client waits for
besides, its own turn on a CPU included, is in the client's figures only.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import math
import pathlib
import statistics
import time
import typing as ty
from xml.etree import ElementTree

from benchmarks import charging_rig
from benchmarks import isolated_client
from benchmarks import packet_watch
from benchmarks import request_client
from benchmarks import thread_reservation
from vsched_agent.host import schedstat
from vsched_agent.profiling.error import hogs as profiling_hogs
from vsched_agent.tests.functional import agent_guests
from vsched_lib.model import reservation

#: The period of reservations that others have, in microseconds.
PERIOD_US = 20_000


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
                    thread_reservation.reserve(hog.pid, *self._reserved)
                self.pids.append(hog.pid)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self.pids.clear()
        self._stack.close()


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
                    runs=(
                        'echo %d %d 0'
                        % (charging_rig.ECHO_PORT, self._work_us),
                    ),
                    networks=charging_rig.network(bridge),
                    ip='%s/%d' % (isolated_client.SERVER, charging_rig.PREFIX),
                    **self._fields,
                )
            )
            agent_guests.require_clock_source((self.vm,))
            self._watch = enter(packet_watch.Watch(_device(self.vm)))
            self._client = enter(isolated_client.Client(bridge))
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
        return Hogs.reserved_mcpu(
            1, isolated_client.CLIENT_US, isolated_client.CLIENT_PERIOD_US
        )

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
