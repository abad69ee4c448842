# SPDX-License-Identifier: Apache-2.0

"""What every functional test of the agent stands on."""

import contextlib
import dataclasses
import errno
import glob
import os
import threading
import time
import typing as ty

import fixtures
import libvirt
from oslotest import base

from vsched_agent.enforcement import capacity
from vsched_agent.host import cgroup
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fixtures as agent_fixtures
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests

#: More than any host admits.
_ALL_UNITS = 1 << 32
_ONE_CPU_UNITS = 1 << 20
#: Bandwidth of threads that died is free a period later; longest wait.
_SETTLE_S = 60.0
#: A host that is the same for so long stays so, in seconds.
_STABLE_S = 1.0
_LIMITS = (
    'cpu.cfs_quota_us',
    'cpu.cfs_period_us',
    'cpu.max',
    'cpuset.cpus',
    'cpuset.sched_load_balance',
)
_NO_LIMIT = ('-1', '100000', 'max 100000')


@dataclasses.dataclass(frozen=True)
class HostState:
    """What has to be after the tests what it was before.

    :param admissible_units: what the kernel still admits, 2**-20 CPU.
    :param deadline_threads: threads under SCHED_DEADLINE.
    :param domains: names of the domains that run.
    :param limits: text of control files by path.
    """

    admissible_units: int
    deadline_threads: tuple[int, ...]
    domains: tuple[str, ...]
    limits: dict[str, str]

    @classmethod
    def look(cls) -> 'HostState':
        """How the host is now."""
        connection = libvirt.open(agent_fixtures.URI)
        try:
            domains = sorted(
                one.name()
                for one in connection.listAllDomains(
                    libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
                )
            )
        finally:
            connection.close()
        return cls(
            sched.probe_free_bandwidth(_ALL_UNITS),
            tuple(one.tid for one in capacity.deadline_threads()),
            tuple(domains),
            dict(_limits()),
        )

    @classmethod
    def settled(cls) -> 'HostState':
        """How the host is once all that earlier tests had is free.

        The bandwidth of a thread that has ended is free up to a period later.
        """
        give_up = time.monotonic() + _SETTLE_S
        found = cls.look()
        while time.monotonic() < give_up:
            agent_guests.pause(_STABLE_S)
            before, found = found, cls.look()
            if not before.changes(found):
                break
        return found

    def changes(self, later: 'HostState') -> dict[str, ty.Any]:
        """What is different later; empty when the host is as found."""
        found = {
            name: (getattr(self, name), getattr(later, name))
            for name in ('admissible_units', 'deadline_threads', 'domains')
            if getattr(self, name) != getattr(later, name)
        }
        for path in self.limits.keys() | later.limits.keys():
            before, after = self.limits.get(path), later.limits.get(path)
            # libvirt keeps the folder of its groups once it was made.
            if before is not None and after is not None:
                if before != after:
                    found[path] = (before, after)
            elif (
                after is not None
                and 'cpuset' not in path
                and after not in _NO_LIMIT
            ):
                found[path] = (before, after)
        return found


def _limits() -> ty.Iterator[tuple[str, str]]:
    for path in glob.iglob('/sys/fs/cgroup/**/cpu*', recursive=True):
        if os.path.basename(path) in _LIMITS:
            try:
                yield os.path.realpath(path), cgroup.read_text(path)
            except FileNotFoundError:
                continue


def assert_as_found(found: HostState) -> None:
    """The host has to be as it was found, at once or soon."""
    give_up = time.monotonic() + _SETTLE_S
    while changes := found.changes(HostState.look()):
        if time.monotonic() > give_up:
            raise AssertionError(
                'the host is not as it was found: %s' % changes
            )
        agent_guests.pause(0.1)


class AgentCase(base.BaseTestCase):
    """An agent and a few guests, which the tests of a class share.

    Afterwards the host has to be as it was found.
    """

    #: By name, what :class:`agent_guests.Vm` takes.
    GUESTS: ty.ClassVar[dict[str, dict[str, ty.Any]]] = {}
    #: Options of the agent, as :class:`agent_fixture.RunningAgent` takes them.
    AGENT: ty.ClassVar[dict[str, ty.Any]] = {}
    #: What the agent has to give, two CPUs less what a kernel may keep.
    CAPACITY_MCPU = 1_800

    #: Of one CPU, over three seconds, next to neighbours that burn.
    TOLERANCE = 0.02

    vms: ty.ClassVar[dict[str, agent_guests.Vm]]
    found: ty.ClassVar[dict[str, list[tuple[ty.Any, ...]]]]
    agent: ty.ClassVar[agent_fixture.RunningAgent]
    _found: ty.ClassVar['HostState']
    _shared: ty.ClassVar[list[ty.Any]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        agent_fixtures.require_libvirt(cls)
        cls._found = HostState.settled()
        if _mcpu(cls._found.admissible_units) < cls.CAPACITY_MCPU:
            raise cls.skipException(
                '%d mcpu are needed; the kernel admits '
                '%d units of 2**-20 CPU'
                % (cls.CAPACITY_MCPU, cls._found.admissible_units)
            )
        cls._shared = []
        try:
            cls._start()
        except BaseException:
            cls._stop()
            raise

    @classmethod
    def _start(cls) -> None:
        folder = fixtures.TempDir()
        folder.setUp()
        cls._shared.append(folder.cleanUp)
        cls.vms = {
            name: agent_guests.Vm(folder.path, **fields)
            for name, fields in cls.GUESTS.items()
        }
        guests = list(cls.vms.values())
        cls._shared.append(lambda: agent_guests.stop_all(guests))
        agent_guests.start_all(guests)
        #: By the domain's name, what it had before any agent came.
        cls.found = {vm.spec.name: vm.found() for vm in guests}
        # However large the host is, so much may be promised.
        cls.agent = agent_fixture.RunningAgent(
            reserve_mcpu=_mcpu(cls._found.admissible_units)
            - cls.CAPACITY_MCPU,
            **cls.AGENT,
        )
        # First in, so that it leaves the guests as found before they end.
        cls._shared.append(cls.agent.cleanUp)
        cls.agent.setUp()

    @classmethod
    def _stop(cls) -> None:
        while cls._shared:
            cls._shared.pop()()

    @classmethod
    def tearDownClass(cls) -> None:
        cls._stop()
        assert_as_found(cls._found)
        super().tearDownClass()

    def setUp(self) -> None:
        super().setUp()
        self.collector = self.agent.collector
        if self.agent.agent is None:
            # A test that failed half-way must not fail the others.
            self.agent.configure()
            self.agent.start()

    def restart_agent(self, **options: ty.Any) -> None:
        """Configure the agent otherwise for the length of a test."""
        self.addCleanup(self.agent.start)
        self.addCleanup(self.agent.configure)
        self.addCleanup(self.agent.stop)
        self.agent.stop()
        self.agent.configure(**options)
        self.agent.start()

    def assert_share(self, expected: float, vm: agent_guests.Vm) -> None:
        """The first vCPU gets this part of one CPU, no more and no less."""
        got = agent_guests.measure(vm.vcpu_tids[:1])
        self.assertLess(
            abs(got.shares[0] - expected), self.TOLERANCE + got.stolen, got
        )

    def override(
        self,
        vm: agent_guests.Vm,
        runtime_us: int,
        period_us: int = 20_000,
        mode: str = 'capped',
        backend: str | None = None,
    ) -> int:
        """Override for the length of a test.

        :returns: a place in the reports before it.
        """
        mark = self.collector.mark()
        self.agent.override(vm.uuid, runtime_us, period_us, mode, backend)
        self.addCleanup(self.end_override, vm)
        return mark

    def end_override(self, vm: agent_guests.Vm) -> int:
        """Let the flavor speak again, and wait for what comes of it."""
        mark = self.collector.mark()
        if any(
            one.instance_uuid == vm.uuid
            for one in self.collector.on_overrides('').overrides
        ):
            self.agent.end_override(vm.uuid)
            if self.agent.agent is not None:
                self.collector.await_news(
                    lambda: (
                        (said := self.collector.said(vm.uuid)) is None
                        or said.source != 'override'
                    ),
                    'end of the override',
                )
        return mark


def _mcpu(units: int) -> int:
    return int(units * 1000 / _ONE_CPU_UNITS)


@contextlib.contextmanager
def taken_but(left: float) -> ty.Iterator[None]:
    """All deadline bandwidth but so much is held by threads of others.

    :param left: CPUs that the kernel still admits meanwhile; 0.001 more at
        the most.
    """
    free = _free_cpus()
    with contextlib.ExitStack() as stack:
        while (most := free - left) > 0.001:
            cpus = min(most, 0.9)
            try:
                stack.enter_context(_taken(cpus))
            except OSError as failure:
                if failure.errno != errno.EBUSY:
                    raise
                # An agent has given some to I/O threads meanwhile.
                free = _free_cpus()
            else:
                free -= cpus
        yield


def _free_cpus() -> float:
    """Return what the kernel still admits, in CPUs."""
    return sched.probe_free_bandwidth(_ALL_UNITS) / _ONE_CPU_UNITS


@contextlib.contextmanager
def _taken(cpus: float) -> ty.Iterator[None]:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    period_ns = 20_000_000
    try:
        # A thread that ends in the class leaks nothing; one that leaves it
        # asleep may.
        syscalls.set_attr(
            thread.native_id or 0,
            syscalls.Attr(
                syscalls.SCHED_DEADLINE,
                syscalls.FLAG_RESET_ON_FORK,
                0,
                0,
                int(cpus * period_ns),
                period_ns,
                period_ns,
            ),
        )
        yield
    finally:
        end.set()
        thread.join()
