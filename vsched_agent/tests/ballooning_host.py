# SPDX-License-Identifier: Apache-2.0

"""Test doubles of ballooning: instances, a host and a clock."""

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
from vsched_agent.ballooning import loop
from vsched_agent.ballooning import transaction
from vsched_agent.tests import fakes
from vsched_agent.tests import simulated_guests
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import contention
from vsched_lib.model import reservation

SECOND_NS = 1_000_000_000


class RecordStore:
    """Stores records in memory."""

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
    """Records the actions on a host; any succeeds unless set otherwise."""

    def __init__(self) -> None:
        self.bindable = True
        self.refuse: errors.Refused | None = None
        self.vcpu_sets: dict[str, tuple[int, ...]] = {}
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
        self.vcpu_sets.pop(uuid, None)

    def move_reservation(
        self,
        uuid: str,
        record: base.Record | None,
        unpin: base.Record | None = None,
    ) -> None:
        if unpin is not None:
            self.unbound.append(unpin)
        if record is None:
            self.vcpu_sets.pop(uuid, None)
        elif self.refuse is not None:
            raise self.refuse
        else:
            self.vcpu_sets[uuid] = record.online


class Host:
    """Instances on a few CPUs, and the loop of ballooning.

    Time passes when the test requests it; a second is one sample.
    """

    def __init__(
        self,
        cpus: int = 2,
        store: RecordStore | None = None,
        guests: simulated_guests.SimulatedGuests | None = None,
        settings: base.Settings | None = None,
    ) -> None:
        self.now_s = 1000.0
        self.guests = guests or simulated_guests.SimulatedGuests()
        self.store = store or RecordStore()
        self.actions = HostActions()
        self.events: list[tuple[ty.Any, ...]] = []
        self.reports: list[
            balloons.BalloonReport | balloons.BalloonChange
        ] = []
        # What is done to most of these goes on after the trial, and few have
        # a counter.
        self.settings = settings or base.Settings(
            guest_timeout_s=0.3, keep_unknown=True
        )
        self.domains: dict[str, ty.Any] = {}
        self.flavors: dict[str, base.FlavorSettings] = {}
        self.busy: dict[str, tuple[float, float]] = {}
        self.reserved: dict[str, reservation.Reservation] = {}
        self.strays: set[str] = set()
        self.loop = loop.BalloonLoop(
            self.settings,
            self.guests,
            transaction.BalloonTransactions(
                self.guests, self.actions, self.store, self.settings
            ),
            self.emit_event,
            lambda: range(cpus),
            self.reports.append,
            lambda: self.now_s,
        )

    def emit_event(
        self,
        code: str,
        severity: messages.Severity,
        detail: str,
        instance_uuid: str | None = None,
        figures: dict[str, ty.Any] | None = None,
    ) -> None:
        self.events.append((code, instance_uuid, detail, figures))

    def last_report(self, uuid: str) -> balloons.BalloonReport:
        """Return the last reported state of an instance."""
        return [
            one
            for one in self.reports
            if isinstance(one, balloons.BalloonReport)
            and one.instance_uuid == uuid
        ][-1]

    def history(self, uuid: str) -> list[balloons.BalloonChange]:
        """Return what was reported last of each of its balloons."""
        return balloons.whole(
            one
            for one in self.reports
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
        reserved: reservation.Reservation | None = None,
        **flavors: ty.Any,
    ) -> str:
        """An instance whose vCPUs run and wait for parts of the time."""
        domain = fakes.domain(number, vcpus)
        uuid = domain.uuid
        self.domains[uuid] = domain
        self.flavors[uuid] = base.FlavorSettings(**{'auto': True, **flavors})
        self.busy[uuid] = (run, wait)
        if reserved is not None:
            self.reserved[uuid] = reserved
        if boot:
            self.guests.boot(uuid, vcpus)
        return uuid

    def restart(self, uuid: str) -> None:
        """Its process is another one."""
        self.domains[uuid] = dataclasses.replace(
            self.domains[uuid], pid=self.domains[uuid].pid + 1
        )

    def pass_time(self, seconds: int = 1) -> None:
        """Process a sample of each second, with all actions that follow."""
        for _ in range(seconds):
            self.now_s += 1
            self.loop.process_samples(
                [self._sample(uuid) for uuid in self.domains]
            )
            self.wait_for_actions()

    def wait_for_actions(self) -> None:
        """Wait until no action runs; process what was posted."""
        limit_s = time.monotonic() + 120
        never = threading.Event()
        while True:
            while not self.loop.posted.empty():
                item = self.loop.posted.get()
                if item is not None:
                    item()
            if not any(one.busy for one in self.loop.instances()):
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
            self.flavors[uuid],
            SECOND_NS,
            {
                vcpu.index: contention.VcpuUse(
                    int(run * SECOND_NS), int(wait * SECOND_NS), 100
                )
                if vcpu.index in online
                else contention.VcpuUse(0, 0)
                for vcpu in domain.vcpus
            },
            self.reserved.get(uuid),
        )


class HostCase(test_base.BaseTestCase):
    """Tests with hosts that end with them."""

    def make_host(self, **fields):
        host = Host(**fields)
        self.addCleanup(host.loop.stop, 0.1)
        return host

    def two(self, **fields):
        """Return a host with two contending instances that lost vCPUs.

        The first sample starts a probe; three fill a window.
        """
        host = self.make_host(**fields)
        found = host.add(1), host.add(2)
        host.pass_time(4)
        return host, *found

    def assert_full(self, host, *uuids):
        for uuid in uuids:
            count = len(host.domains[uuid].vcpus)
            self.assertEqual(set(range(count)), host.guests.online(uuid))
            self.assertNotIn(uuid, host.actions.vcpu_sets)
            self.assertNotIn(uuid, host.store.rows)
