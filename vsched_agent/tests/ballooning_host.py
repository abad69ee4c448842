# SPDX-License-Identifier: Apache-2.0

"""What the tests of ballooning need: instances, a host, a clock."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import threading
import time
import typing as ty

from oslotest import base as test_base

from vsched_agent.ballooning import base
from vsched_agent.ballooning import planner
from vsched_agent.ballooning import transaction
from vsched_agent.tests import fakes
from vsched_agent.tests import simulated_guests
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import contention
from vsched_lib.model import reservation

SECOND_NS = 1_000_000_000


class Memory:
    """Remembers as long as the test lasts."""

    def __init__(self) -> None:
        self.rows: dict[str, Mapping[str, ty.Any]] = {}

    def balloons(self) -> list[Mapping[str, ty.Any]]:
        return list(self.rows.values())

    def note_balloon(
        self, instance_uuid: str, body: Mapping[str, ty.Any]
    ) -> None:
        self.rows[instance_uuid] = body

    def forget_balloon(self, instance_uuid: str) -> None:
        self.rows.pop(instance_uuid, None)


class HostActions:
    """A host that does what it is told, and writes it down."""

    def __init__(self) -> None:
        self.bindable = True
        self.refuse: errors.Refused | None = None
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.pins: dict[str, dict[int, int]] = {}
        self.unbound: list[ty.Any] = []
        self.prepared = False
        self.hasty: set[str] = set()

    def prepare(self) -> None:
        self.prepared = True

    @contextlib.contextmanager
    def preempt_faster(self, domain: ty.Any, limit_s: float) -> Iterator[None]:
        self.hasty.add(domain.uuid)
        try:
            yield
        finally:
            self.hasty.remove(domain.uuid)

    def found(
        self, domain: ty.Any, indexes: Sequence[int]
    ) -> Sequence[Mapping[str, ty.Any]] | None:
        return (
            [
                {'tid': vcpu.tid}
                for vcpu in domain.vcpus
                if vcpu.index in indexes
            ]
            if self.bindable
            else None
        )

    def bind(self, domain: ty.Any, pins: Mapping[int, int]) -> None:
        self.pins[domain.uuid] = dict(pins)

    def forget(self, uuid: str) -> None:
        self.shapes.pop(uuid, None)

    def reshape(
        self,
        uuid: str,
        record: base.Record | None,
        unpin: base.Record | None = None,
    ) -> None:
        if unpin is not None:
            self.unbound.append(unpin)
        if record is None:
            self.shapes.pop(uuid, None)
        elif self.refuse is not None:
            raise self.refuse
        else:
            self.shapes[uuid] = record.online


class Host:
    """Instances on a few CPUs, and the controller over them.

    Time passes when it is told to; a second is one look.
    """

    def __init__(
        self,
        cpus: int = 2,
        memory: Memory | None = None,
        guests: simulated_guests.SimulatedGuests | None = None,
        settings: base.Settings | None = None,
    ) -> None:
        self.now_s = 1000.0
        self.guests = guests or simulated_guests.SimulatedGuests()
        self.memory = memory or Memory()
        self.actions = HostActions()
        self.events: list[tuple[ty.Any, ...]] = []
        self.told: list[balloons.BalloonReport | balloons.BalloonChange] = []
        # What is done to most of these goes on after the trial, and few have
        # a counter.
        self.settings = settings or base.Settings(
            guest_timeout_s=0.3, keep_unknown=True
        )
        self.domains: dict[str, ty.Any] = {}
        self.wishes: dict[str, base.Wishes] = {}
        self.busy: dict[str, tuple[float, float]] = {}
        self.promises: dict[str, reservation.Reservation] = {}
        self.strays: set[str] = set()
        self.controller = planner.Controller(
            self.settings,
            self.guests,
            transaction.Steps(
                self.guests, self.actions, self.memory, self.settings
            ),
            self.tell,
            lambda: range(cpus),
            self.told.append,
            lambda: self.now_s,
        )

    def tell(
        self,
        code: str,
        severity: messages.Severity,
        detail: str,
        instance_uuid: str | None = None,
        figures: dict[str, ty.Any] | None = None,
    ) -> None:
        self.events.append((code, instance_uuid, detail, figures))

    def last_report(self, uuid: str) -> balloons.BalloonReport:
        """What was last told of how an instance stands."""
        return [
            one
            for one in self.told
            if isinstance(one, balloons.BalloonReport)
            and one.instance_uuid == uuid
        ][-1]

    def history(self, uuid: str) -> list[balloons.BalloonChange]:
        """What was told of its balloons, the last word on each."""
        return balloons.whole(
            one
            for one in self.told
            if isinstance(one, balloons.BalloonChange)
            and one.instance_uuid == uuid
        )

    def codes(self) -> list[str]:
        """The kinds of events so far, without their common part."""
        return [code.rpartition('.')[2] for code, *_ in self.events]

    def add(
        self,
        number: int,
        vcpus: int = 4,
        run: float = 0.25,
        wait: float = 0.75,
        boot: bool = True,
        promise: reservation.Reservation | None = None,
        **wishes: ty.Any,
    ) -> str:
        """An instance whose vCPUs run and wait for parts of the time."""
        domain = fakes.domain(number, vcpus)
        uuid = domain.uuid
        self.domains[uuid] = domain
        self.wishes[uuid] = base.Wishes(**{'auto': True, **wishes})
        self.busy[uuid] = (run, wait)
        if promise is not None:
            self.promises[uuid] = promise
        if boot:
            self.guests.boot(uuid, vcpus)
        return uuid

    def restart(self, uuid: str) -> None:
        """Its process is another one."""
        self.domains[uuid] = dataclasses.replace(
            self.domains[uuid], pid=self.domains[uuid].pid + 1
        )

    def pass_time(self, seconds: int = 1) -> None:
        """So many looks, each with all that comes of it."""
        for _ in range(seconds):
            self.now_s += 1
            self.controller.see([self._sample(uuid) for uuid in self.domains])
            self.settle()

    def settle(self) -> None:
        """Wait until nothing is under way; do what was posted."""
        limit_s = time.monotonic() + 20
        never = threading.Event()
        while True:
            while not self.controller.posted.empty():
                item = self.controller.posted.get()
                if item is not None:
                    item()
            if not any(one.busy for one in self.controller.instances()):
                return
            if time.monotonic() > limit_s:
                raise AssertionError('something hangs')
            never.wait(0.005)

    def _sample(self, uuid: str) -> base.Sample:
        run, wait = self.busy[uuid]
        domain = self.domains[uuid]
        try:
            online = self.guests.online(uuid)
        except KeyError:
            online = frozenset()
        if uuid in self.strays:
            online = frozenset(range(len(domain.vcpus)))
        if len(online) < len(domain.vcpus):
            # Bound to a CPU of its own.
            run, wait = run + wait, 0.0
        return base.Sample(
            domain,
            self.wishes[uuid],
            SECOND_NS,
            {
                vcpu.index: contention.VcpuUse(
                    int(run * SECOND_NS), int(wait * SECOND_NS), 100
                )
                if vcpu.index in online
                else contention.VcpuUse(0, 0)
                for vcpu in domain.vcpus
            },
            self.promises.get(uuid),
        )


class HostCase(test_base.BaseTestCase):
    """Tests with hosts that end with them."""

    def make_host(self, **fields):
        host = Host(**fields)
        self.addCleanup(host.controller.stop, 0.1)
        return host

    def two(self, **fields):
        """Two instances in each other's way, seen until they were acted on.

        The first look greets them; three make a window.
        """
        host = self.make_host(**fields)
        found = host.add(1), host.add(2)
        host.pass_time(4)
        return host, *found

    def assert_full(self, host, *uuids):
        for uuid in uuids:
            count = len(host.domains[uuid].vcpus)
            self.assertEqual(set(range(count)), host.guests.online(uuid))
            self.assertNotIn(uuid, host.actions.shapes)
            self.assertNotIn(uuid, host.memory.rows)
