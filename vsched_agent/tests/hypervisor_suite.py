# SPDX-License-Identifier: Apache-2.0

"""What every hypervisor driver must do, whatever is behind it.

A driver's tests mix :class:`HypervisorSuite` into a test case that says how
a domain of theirs is started, and so on.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import threading
import time
import typing as ty
import unittest
import uuid as uuids

from vsched_agent.hypervisor import base

SERVER = base.Server(
    'web & <mail> \u2603', '8f3c1d0e9b7a4c5d8e6f0a1b2c3d4e5f', 'm1.small'
)
SPECS = {'vsched:cpu_runtime_us': '12000', 'vsched:cpu_period_us': '20000'}


class Changes:
    """Collects what a driver tells, and waits for it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._told: list[str | None] = []

    def __call__(self, uuid: str | None) -> None:
        with self._condition:
            self._told.append(uuid)
            self._condition.notify_all()

    def wait_for(self, uuid: str | None, timeout_s: float) -> bool:
        """Wait for a change of this domain, and forget all before it."""
        with self._condition:
            told = self._condition.wait_for(
                lambda: uuid in self._told, timeout_s
            )
            if told:
                del self._told[: self._told.index(uuid) + 1]
            return told

    def forget(self) -> None:
        """Wait only for what comes from now on."""
        with self._condition:
            self._told.clear()


def our_threads() -> set[threading.Thread]:
    """The threads that a driver may have started."""
    return {
        thread
        for thread in threading.enumerate()
        if thread.name.startswith('vsched-')
    }


# Checked as what they are mixed into, but not collected as tests.
if ty.TYPE_CHECKING:
    _TestCase = unittest.TestCase
else:
    _TestCase = object


class Watching(_TestCase):
    """What tests of a driver need; mixed into a test case."""

    #: Longest wait for something that happens soon where nothing else runs.
    patience_s = 120.0

    def make_hypervisor(self, **options: ty.Any) -> base.Hypervisor:
        raise NotImplementedError

    def started(self, **options: ty.Any) -> base.Hypervisor:
        """The driver, watching and connected."""
        hypervisor = self.make_hypervisor(**options)
        self.changes = Changes()
        hypervisor.start(self.changes)
        self.addCleanup(hypervisor.stop)
        self.assertTrue(self.changes.wait_for(None, self.patience_s))
        return hypervisor

    def eventually(self, look: Callable[[], ty.Any], what: str) -> None:
        """Wait until ``look`` gives something true."""
        limit_s = time.monotonic() + self.patience_s
        never = threading.Event()
        while not look():
            if time.monotonic() > limit_s:
                self.fail('never came: %s' % what)
            never.wait(0.05)

    def counted(
        self, hypervisor: base.Hypervisor, *asked: str
    ) -> Mapping[str, Mapping[str, base.DiskCounters]]:
        """Return the disk counters of domains, the first of which has some.

        One that is busy, with the channel to its agent for instance, is left
        out of an answer.
        """
        found: list[Mapping[str, Mapping[str, base.DiskCounters]]] = []

        def look() -> bool:
            found.append(hypervisor.disk_counters(asked))
            return asked[0] in found[-1]

        self.eventually(look, 'its counters')
        return found[-1]

    def one(self, hypervisor: base.Hypervisor, uuid: str) -> base.Domain:
        """The domain, which must be running."""
        domain = hypervisor.domain(uuid)
        self.assertIsNotNone(domain)
        return ty.cast(base.Domain, domain)


class HypervisorSuite(Watching):
    """Mixed into a test case."""

    #: What the hypervisor names the first disk.
    disk = 'vda'
    #: Whether vCPUs keep their threads when a guest reboots. On Xen another
    #: domain takes the place of the one that reboots.
    reboot_keeps_threads = True

    # What a driver's tests provide

    def start_domain(
        self,
        vcpus: int = 1,
        max_vcpus: int | None = None,
        extra_specs: Mapping[str, str] | None = None,
        pins: Mapping[int, frozenset[int]] | None = None,
    ) -> str:
        """Start a domain that is ended by a cleanup; its UUID."""
        raise NotImplementedError

    def start_domain_with_disk(self) -> str:
        """The same with a disk, whose guest reads blocks."""
        raise NotImplementedError

    def read_blocks(self, uuid: str) -> None:
        """Have that guest read at least one more block."""
        raise NotImplementedError

    def stop_domain(self, uuid: str) -> None:
        raise NotImplementedError

    def set_extra_specs(
        self, uuid: str, extra_specs: Mapping[str, str]
    ) -> None:
        raise NotImplementedError

    def set_server(self, uuid: str, server: base.Server) -> None:
        """Have Nova know it as this, while it runs."""
        raise NotImplementedError

    def plug_vcpus(self, uuid: str, count: int) -> None:
        raise NotImplementedError

    def pin_vcpu(self, uuid: str, index: int, cpu: int) -> None:
        raise NotImplementedError

    def reboot_domain(self, uuid: str) -> None:
        raise NotImplementedError

    def lose_connection(self) -> None:
        raise NotImplementedError

    def regain_connection(self) -> None:
        raise NotImplementedError

    # The tests

    def test_not_started(self):
        hypervisor = self.make_hypervisor()
        self.assertFalse(hypervisor.connected)
        self.assertRaises(base.HypervisorUnavailable, hypervisor.domains)

    def test_sees_what_ran_before(self):
        uuid = self.start_domain(vcpus=2, extra_specs=SPECS)
        hypervisor = self.started()
        self.assertTrue(hypervisor.connected)
        domain = self.one(hypervisor, uuid)
        self.assertEqual([0, 1], [vcpu.index for vcpu in domain.vcpus])
        self.assertEqual(2, len({vcpu.tid for vcpu in domain.vcpus}))
        self.assertEqual(SPECS, dict(domain.extra_specs))
        self.assertIsNone(domain.metadata_problem)
        self.assertEqual(
            [None, None], [vcpu.pinned_cpus for vcpu in domain.vcpus]
        )
        others = set(domain.emulator_tids) | set(domain.iothread_tids)
        self.assertEqual(set(), others & {vcpu.tid for vcpu in domain.vcpus})
        self.assertIn(domain, hypervisor.domains())

    def test_start_and_stop_are_told(self):
        hypervisor = self.started()
        uuid = self.start_domain()
        self.assertTrue(self.changes.wait_for(uuid, self.patience_s))
        self.eventually(lambda: hypervisor.domain(uuid), 'the new domain')
        self.assertEqual(1, len(self.one(hypervisor, uuid).vcpus))
        self.changes.forget()
        self.stop_domain(uuid)
        self.assertTrue(self.changes.wait_for(uuid, self.patience_s))
        self.eventually(lambda: hypervisor.domain(uuid) is None, 'its end')
        self.assertNotIn(uuid, [one.uuid for one in hypervisor.domains()])

    def test_metadata_change_is_told(self):
        uuid = self.start_domain()
        hypervisor = self.started()
        self.assertEqual({}, dict(self.one(hypervisor, uuid).extra_specs))
        self.changes.forget()
        self.set_extra_specs(uuid, SPECS)
        self.assertTrue(self.changes.wait_for(uuid, self.patience_s))
        self.assertEqual(SPECS, dict(self.one(hypervisor, uuid).extra_specs))

    def test_what_nova_knows_it_as_is_told(self):
        uuid = self.start_domain()
        hypervisor = self.started()
        self.assertEqual(base.Server(), self.one(hypervisor, uuid).server)
        for server in (SERVER, dataclasses.replace(SERVER, name='renamed')):
            self.changes.forget()
            self.set_server(uuid, server)
            self.assertTrue(self.changes.wait_for(uuid, self.patience_s))
            self.assertEqual(server, self.one(hypervisor, uuid).server)

    def test_vcpu_plugged_in_is_told(self):
        uuid = self.start_domain(vcpus=1, max_vcpus=2)
        hypervisor = self.started()
        before = self.one(hypervisor, uuid)
        self.changes.forget()
        self.plug_vcpus(uuid, 2)
        self.assertTrue(self.changes.wait_for(uuid, self.patience_s))
        self.eventually(
            lambda: len(self.one(hypervisor, uuid).vcpus) == 2,
            'the second vCPU',
        )
        after = self.one(hypervisor, uuid)
        self.assertEqual(before.vcpus[0], after.vcpus[0])
        self.assertNotEqual(after.vcpus[0].tid, after.vcpus[1].tid)

    def test_pinning_is_told(self):
        uuid = self.start_domain(vcpus=2, pins={1: frozenset({1})})
        hypervisor = self.started()
        self.assertEqual(
            [None, frozenset({1})],
            [vcpu.pinned_cpus for vcpu in self.one(hypervisor, uuid).vcpus],
        )
        self.changes.forget()
        self.pin_vcpu(uuid, 0, 0)
        self.assertTrue(self.changes.wait_for(uuid, self.patience_s))
        self.assertEqual(
            [frozenset({0}), frozenset({1})],
            [vcpu.pinned_cpus for vcpu in self.one(hypervisor, uuid).vcpus],
        )

    def test_reboot_is_told(self):
        uuid = self.start_domain()
        hypervisor = self.started()
        before = self.one(hypervisor, uuid)
        self.changes.forget()
        self.reboot_domain(uuid)
        self.assertTrue(self.changes.wait_for(uuid, self.patience_s))
        if not self.reboot_keeps_threads:
            self.eventually(
                lambda: (
                    (after := hypervisor.domain(uuid))
                    and after.pid != before.pid
                ),
                'the domain after the reboot',
            )
            after = self.one(hypervisor, uuid)
            self.assertEqual(len(before.vcpus), len(after.vcpus))
            self.assertEqual(
                set(), set(before.vcpus).intersection(after.vcpus)
            )
            return
        self.assertEqual(before.vcpus, self.one(hypervisor, uuid).vcpus)

    def test_connection_lost_and_back(self):
        uuid = self.start_domain()
        hypervisor = self.started()
        before = self.one(hypervisor, uuid)
        self.lose_connection()
        self.assertTrue(self.changes.wait_for(None, self.patience_s))
        self.assertFalse(hypervisor.connected)
        self.assertRaises(base.HypervisorUnavailable, hypervisor.domains)
        self.assertRaises(base.HypervisorUnavailable, hypervisor.domain, uuid)
        self.regain_connection()
        self.assertTrue(self.changes.wait_for(None, self.patience_s))
        self.assertTrue(hypervisor.connected)
        self.assertEqual(before.vcpus, self.one(hypervisor, uuid).vcpus)
        self.changes.forget()
        self.set_extra_specs(uuid, SPECS)
        self.assertTrue(self.changes.wait_for(uuid, self.patience_s))

    def test_disks_are_counted(self):
        with_disk, without = self.start_domain_with_disk(), self.start_domain()
        hypervisor = self.started()
        self.assertEqual((self.disk,), self.one(hypervisor, with_disk).disks)
        self.assertEqual((), self.one(hypervisor, without).disks)

        def reads() -> int:
            found = self.counted(hypervisor, with_disk, without)
            self.assertEqual({with_disk}, found.keys())
            counters = found[with_disk]
            self.assertEqual({self.disk}, counters.keys())
            self.assertGreaterEqual(counters[self.disk].writes, 0)
            return int(counters[self.disk].reads)

        before = reads()
        self.read_blocks(with_disk)
        self.eventually(lambda: reads() > before, 'a block')

    def test_only_disks_that_were_asked_for(self):
        uuid = self.start_domain_with_disk()
        hypervisor = self.started()
        self.assertEqual({}, hypervisor.disk_counters(()))
        self.assertEqual({}, hypervisor.disk_counters((str(uuids.uuid4()),)))
        self.assertEqual({uuid}, self.counted(hypervisor, uuid).keys())
        self.lose_connection()
        self.assertTrue(self.changes.wait_for(None, self.patience_s))
        self.assertRaises(
            base.HypervisorUnavailable, hypervisor.disk_counters, (uuid,)
        )

    def test_unknown_domain(self):
        hypervisor = self.started()
        self.assertIsNone(hypervisor.domain(str(uuids.uuid4())))

    def test_stop_and_start_again(self):
        uuid = self.start_domain()
        before = our_threads()
        hypervisor = self.make_hypervisor()
        for _ in range(2):
            changes = Changes()
            hypervisor.start(changes)
            self.assertTrue(changes.wait_for(None, self.patience_s))
            self.one(hypervisor, uuid)
            hypervisor.stop()
            self.assertFalse(hypervisor.connected)
            # A call of an earlier test may return, and its thread end.
            self.assertEqual(set(), our_threads() - before)

    def test_a_callback_that_fails_is_survived(self):
        told = threading.Event()

        def fail(uuid):
            if uuid is not None:
                told.set()
            raise RuntimeError('on purpose')

        hypervisor = self.make_hypervisor()
        hypervisor.start(fail)
        self.addCleanup(hypervisor.stop)
        self.eventually(lambda: hypervisor.connected, 'the connection')
        self.start_domain()
        self.assertTrue(told.wait(self.patience_s))
        self.assertTrue(hypervisor.connected)

    def test_many_threads_may_ask(self):
        uuid = self.start_domain(vcpus=2)
        hypervisor = self.started()
        expected = self.one(hypervisor, uuid)
        failures: list[ty.Any] = []

        def ask() -> None:
            try:
                for _ in range(10):
                    if hypervisor.domain(uuid) != expected:
                        failures.append('another answer')
                    if uuid not in {one.uuid for one in hypervisor.domains()}:
                        failures.append('left out')
            except Exception as error:
                failures.append(error)

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        self.assertEqual([], failures)
