# SPDX-License-Identifier: Apache-2.0

"""The ways of scheduling that benchmarks of response times compare."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import enum
import random
import statistics
import time
import typing as ty

import libvirt

from benchmarks import charging_rig
from benchmarks import request_rig
from vsched_agent.host import schedstat
from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests

#: The period of all reservations, in microseconds.
PERIOD_US = request_rig.PERIOD_US
#: A change of all VMs takes at most that long, in seconds.
PATIENCE_S = 60.0
_POLL_S = 0.1
_NS_PER_US = 1_000


class Way(enum.Enum):
    """How VMs are scheduled."""

    #: As a host without vsched does it.
    DEFAULT = 'default'
    #: The backend ``cfs``: a quota in a period.
    QUOTA = 'quota'
    #: The backend ``deadline`` with the period of the reservation.
    FIXED = 'fixed'
    #: The same, and the agent divides periods where it sees fit.
    SHAPED = 'shaped'


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A VM and what is reserved for each of its vCPUs in every period.

    :param vm: the VM.
    :param runtime_us: the runtime, in microseconds.
    :param communicates: whether its period is measured; the others' stay as
        they are if they only compute.
    """

    vm: agent_guests.Vm
    runtime_us: int
    communicates: bool = True

    def specs(self, way: Way) -> dict[str, str]:
        """Return its extra specs, without their namespace."""
        if way is Way.DEFAULT:
            return {}
        return {
            'cpu_runtime_us': str(self.runtime_us),
            'cpu_period_us': str(PERIOD_US),
            'backend': 'cfs' if way is Way.QUOTA else 'deadline',
            'comm_aware': str(way is Way.SHAPED).lower(),
        }

    def scheduled(self, way: Way) -> bool:
        """Return whether the kernel schedules it so."""
        held = [
            attr if attr.policy == syscalls.SCHED_DEADLINE else None
            for attr in self.vm.attrs()
        ]
        if way in (Way.DEFAULT, Way.QUOTA):
            quota = -1 if way is Way.DEFAULT else self.runtime_us
            return not any(held) and all(
                self.vm.quota(index)[0] == quota for index in range(len(held))
            )
        return all(
            attr is not None
            and divides(attr.runtime_ns, attr.period_ns, self.runtime_us)
            and (way is Way.SHAPED or _division(attr.period_ns) == 1)
            for attr in held
        )

    def divisions(self) -> list[int]:
        """Return by how much each period is divided; 0 for no reservation.

        Those of the vCPUs first, then those of the I/O threads.
        """
        return [
            _division(attr.period_ns)
            if attr.policy == syscalls.SCHED_DEADLINE
            else 0
            for attr in map(
                syscalls.get_attr, [*self.vm.vcpu_tids, *self.vm.io_tids]
            )
        ]


def _division(period_ns: int) -> int:
    return round(PERIOD_US * _NS_PER_US / period_ns)


def divides(runtime_ns: int, period_ns: int, runtime_us: int) -> bool:
    """Return whether a pair is a reservation or a fraction of it.

    To the nearest microsecond: an agent that checks budgets between ticks has
    them off by a nanosecond every other time.

    :param runtime_us: the reservation's, in :data:`PERIOD_US`
    """
    parts = _division(period_ns)
    return (
        abs(parts * period_ns - PERIOD_US * _NS_PER_US) < _NS_PER_US * parts
        and abs(parts * runtime_ns - runtime_us * _NS_PER_US)
        < _NS_PER_US * parts
    )


class Scheduler:
    """Has VMs scheduled in one way after the other.

    :param members: all VMs of the host.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def change(self, way: Way) -> None:
        """Change all VMs, and wait until the kernel has it so.

        :raises RuntimeError: naming a VM that is not scheduled so in time
        """
        for one in self._members:
            one.vm.set_extra_specs(one.specs(way))
        give_up_s = time.monotonic() + PATIENCE_S
        for one in self._members:
            while not one.scheduled(way):
                if time.monotonic() > give_up_s:
                    raise RuntimeError(
                        '%s is not scheduled as %s: %s, quota %s'
                        % (
                            one.vm.spec.name,
                            way.value,
                            one.vm.held(),
                            one.vm.quota(),
                        )
                    )
                agent_guests.pause(_POLL_S)

    def divisions(self) -> list[list[int]]:
        """Return how the periods of those that communicate are divided."""
        return [one.divisions() for one in self._members if one.communicates]

    def await_steady(
        self,
        communicate: Callable[[], ty.Any],
        steady_s: float,
        patience_s: float,
    ) -> None:
        """Wait until divisions do not change any more, or for long enough.

        Where they never stop to change that is part of what is measured.

        :param communicate: has the VMs send or receive something
        :param steady_s: for how long they may not change, in seconds
        :param patience_s: how long to wait, in seconds
        """
        give_up_s = time.monotonic() + patience_s
        last, since_s = self.divisions(), time.monotonic()
        while time.monotonic() < min(since_s + steady_s, give_up_s):
            communicate()
            divisions = self.divisions()
            if divisions != last:
                last, since_s = divisions, time.monotonic()

    def undivide(self, vcpus: bool) -> None:
        """Put the periods of one kind of threads back.

        No agent may run, as it would repair them.

        :param vcpus: those of the vCPUs; those of the I/O threads otherwise
        """
        for one in self._members:
            for tid in one.vm.vcpu_tids if vcpus else one.vm.io_tids:
                attr = syscalls.get_attr(tid)
                if attr.policy != syscalls.SCHED_DEADLINE:
                    continue
                parts = _division(attr.period_ns)
                if parts > 1:
                    syscalls.set_attr(
                        tid,
                        attr._replace(
                            runtime_ns=parts * attr.runtime_ns,
                            deadline_ns=parts * attr.deadline_ns,
                            period_ns=parts * attr.period_ns,
                        ),
                    )


@contextlib.contextmanager
def agent(
    reserve_mcpu: int, **options: ty.Any
) -> Iterator[agent_fixture.RunningAgent]:
    """Run the agent at the pace that is its default.

    :param reserve_mcpu: what others hold of the host's bandwidth.
    """
    with agent_fixture.RunningAgent(
        **{
            'interval': 1.0,
            'report_interval': 1.0,
            'restore_on_stop': True,
            'reserve_mcpu': reserve_mcpu,
            **options,
        }
    ) as running:
        yield running


@contextlib.contextmanager
def stopped(running: agent_fixture.RunningAgent) -> Iterator[None]:
    """Stop an agent for a while.

    :param running: has ``restore_on_stop`` off, so that what it applied
        stays in force meanwhile
    """
    running.stop()
    try:
        yield
    finally:
        running.start()


class Seen(ty.NamedTuple):
    """What the host did in a while.

    :param shares: CPUs that each thread got.
    :param switches_per_s: context switches of the whole host.
    """

    shares: list[float]
    switches_per_s: float


class HostWatch:
    """Sees what threads get, from its making on.

    :param tids: the threads.
    """

    def __init__(self, tids: Sequence[int]) -> None:
        self._tids = tids
        self._before = self._read()

    def _read(self) -> tuple[int, list[int], int]:
        return (
            time.monotonic_ns(),
            [schedstat.read(tid).run_ns for tid in self._tids],
            request_rig.context_switches(),
        )

    def read(self) -> Seen:
        """Return what was seen until now."""
        (began_ns, before, first), (now_ns, after, last) = (
            self._before,
            self._read(),
        )
        length_ns = now_ns - began_ns
        return Seen(
            [
                (later - earlier) / length_ns
                for earlier, later in zip(before, after, strict=True)
            ],
            1e9 * (last - first) / length_ns,
        )


class HogVms:
    """VMs of one vCPU that burn all the CPU time they get.

    A context manager.

    :param count: how many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._stack = contextlib.ExitStack()
        self.vms: list[agent_guests.Vm] = []

    def __enter__(self) -> ty.Self:
        try:
            folder = self._stack.enter_context(charging_rig.folder())
            self.vms = [
                agent_guests.Vm(folder, 'burn') for _ in range(self._count)
            ]
            self._stack.callback(agent_guests.stop_all, self.vms)
            agent_guests.start_all(self.vms)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    @property
    def tids(self) -> list[int]:
        """The threads of their vCPUs."""
        return [tid for one in self.vms for tid in one.vcpu_tids]

    def stop(self) -> None:
        """Have them use no CPU time; QEMU still answers the agent."""
        for one in self.vms:
            one.handle.suspend()

    def go(self) -> None:
        """Have them burn again; nothing happens to those that do."""
        for one in self.vms:
            if one.handle.state()[0] == libvirt.VIR_DOMAIN_PAUSED:
                one.handle.resume()


def rounds(
    variants: Sequence[str], repeats: int, seed: int
) -> Iterator[tuple[int, str]]:
    """Yield all variants in each repeat, in a new order each time.

    :returns: the number of the repeat, from 0, and the variant
    """
    order = random.Random(seed)
    for repeat in range(repeats):
        for name in order.sample(variants, len(variants)):
            yield repeat, name


def figures_of(
    repeated: Sequence[Mapping[str, ty.Any]],
    lists: Sequence[str] = ('hog_shares', 'divisions'),
) -> dict[str, ty.Any]:
    """Return what is kept of the repeats of a variant.

    :param lists: figures of which each repeat's is kept; of the others, the
        spread
    """
    return {
        **request_rig.spreads(
            [
                {name: one[name] for name in one if name not in lists}
                for one in repeated
            ]
        ),
        **{name: [one[name] for one in repeated] for name in lists},
    }


def ratios(
    found: Mapping[str, Sequence[Mapping[str, float]]],
    figure: str,
    name: str,
    reference: str,
) -> list[float]:
    """Return a figure over the same of another variant, repeat by repeat.

    :param found: the figures of each repeat, by variant
    :param name: the variant
    :param reference: the other one
    """
    return [
        one[figure] / other[figure]
        for one, other in zip(found[name], found[reference], strict=True)
    ]


def cut_pct(values: Sequence[float]) -> float:
    """Return how much less the median of such ratios is than 1, percent."""
    return round(100 * (1 - statistics.median(values)), 2)


def hog_share_change_pct(
    before: Sequence[Mapping[str, ty.Any]],
    after: Sequence[Mapping[str, ty.Any]],
) -> float:
    """Return the median of :func:`share_change_pct` of repeats.

    :param before: the figures of each repeat, with ``hog_shares``
    :param after: those of another variant
    """
    return round(
        statistics.median(
            share_change_pct(one['hog_shares'], two['hog_shares'])
            for one, two in zip(before, after, strict=True)
        ),
        3,
    )


def share_change_pct(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the largest relative change of any share, in percent.

    :param before: shares, one for each VM
    :param after: the same VMs' shares
    """
    return max(
        100 * abs(two / one - 1)
        for one, two in zip(before, after, strict=True)
    )
