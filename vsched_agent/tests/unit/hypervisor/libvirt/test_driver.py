# SPDX-License-Identifier: Apache-2.0

"""What the driver remembers, with a daemon that only pretends."""

import uuid as uuids

import fixtures
import libvirt
from oslotest import base as test_base

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import connection as libvirt_connection
from vsched_agent.hypervisor.libvirt import driver
from vsched_agent.hypervisor.libvirt import monitor as qemu_monitor
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests import fake_qemu
from vsched_agent.tests import hypervisor_suite
from vsched_lib import bounded_calls


class NoSuchDomain(libvirt.libvirtError):
    def get_error_code(self):
        return libvirt.VIR_ERR_NO_DOMAIN


class FakeDomain:
    """A handle of a domain; counts what it is asked."""

    def __init__(self, qemu, vcpus):
        self.spec = domain_xml.DomainSpec(
            'fake', '/k', '/i', vcpus=vcpus, extra_specs=hypervisor_suite.SPECS
        )
        self.qemu = qemu
        self.number = 1
        self.descriptions = 0
        self.error = None

    def UUIDString(self):
        return self.spec.uuid

    def name(self):
        return self.spec.name

    def ID(self):
        return self.number

    def XMLDesc(self):
        self.descriptions += 1
        if self.error:
            raise self.error
        return domain_xml.build(self.spec)


class FakeConnection:
    """Stands for libvirt_connection.Connection and for libvirt's own."""

    def __init__(self, *arguments):
        self.on_event, self.on_state = arguments[-2:]
        self.current = self
        self.domains = {}
        self.alive = True
        self.losses = 0

    def start(self):
        self.on_state(True)

    def stop(self):
        self.current = None

    def lost(self, connection):
        self.losses += 1
        self.current = None

    def isAlive(self):
        return self.alive

    def listAllDomains(self, flags):
        return list(self.domains.values())

    def lookupByUUIDString(self, uuid):
        if not self.alive:
            raise libvirt.libvirtError('gone')
        if uuid not in self.domains:
            raise NoSuchDomain('none')
        return self.domains[uuid]


class DriverTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MockPatchObject(
                libvirt_connection, 'Connection', FakeConnection
            )
        )
        self.ask = self.useFixture(
            fixtures.MockPatchObject(
                qemu_monitor, 'vcpus', side_effect=self.monitor
            )
        ).mock
        self.changes = hypervisor_suite.Changes()
        self.driver = driver.LibvirtHypervisor(
            run_dir='/nowhere',
            watch_interval_s=3600,
            call_timeout_s=30,
            monitor_timeout_s=30,
        )
        self.driver.start(self.changes)
        self.addCleanup(self.driver.stop)
        self.connection = self.driver._connection
        self.one = self.add()

    def add(self, vcpus=2):
        uuid = str(uuids.uuid4())
        qemu = self.useFixture(fake_qemu.FakeQemu(uuid, vcpus))
        domain = FakeDomain(qemu, vcpus)
        object.__setattr__(domain.spec, 'uuid', uuid)
        self.connection.domains[uuid] = domain
        return domain

    def monitor(self, domain):
        return dict(enumerate(domain.qemu.vcpu_tids))

    def see(self, domain=None):
        return self.driver.domain((domain or self.one).spec.uuid)

    def test_seen_once(self):
        first = self.see()
        self.assertEqual(self.one.qemu.pid, first.pid)
        self.assertEqual(
            self.one.qemu.vcpu_tids, [vcpu.tid for vcpu in first.vcpus]
        )
        self.assertEqual(hypervisor_suite.SPECS, first.extra_specs)
        self.assertIs(first, self.see())
        self.assertEqual([first], self.driver.domains())
        self.assertEqual(1, self.one.descriptions)
        self.assertEqual(1, self.ask.call_count)

    def test_seen_again_after_an_event(self):
        other = self.add()
        self.driver.domains()
        self.connection.on_event(self.one.spec.uuid)
        self.driver.domains()
        self.assertEqual(2, self.one.descriptions)
        self.assertEqual(1, other.descriptions)

    def test_an_event_during_a_look_is_not_lost(self):
        describe = self.one.XMLDesc

        def changed_meanwhile():
            text = describe()
            self.connection.on_event(self.one.spec.uuid)
            return text

        self.one.XMLDesc = changed_meanwhile
        self.see()
        self.one.XMLDesc = describe
        self.see()
        self.see()
        self.assertEqual(2, self.one.descriptions)

    def test_a_lost_connection_forgets(self):
        self.see()
        self.connection.on_state(False)
        self.assertTrue(self.changes.wait_for(None, 1))
        self.see()
        self.assertEqual(2, self.one.descriptions)

    def test_a_new_start_is_another_domain(self):
        self.see()
        self.one.number = 2
        self.see()
        self.assertEqual(2, self.one.descriptions)

    def test_helper_threads_come_and_go(self):
        first = self.see()
        tid = self.one.qemu.start_thread('worker')
        second = self.see()
        self.assertEqual(
            {tid}, set(second.emulator_tids) - set(first.emulator_tids)
        )
        self.assertEqual(first.vcpus, second.vcpus)
        self.assertEqual(1, self.one.descriptions)
        self.driver._watch.check()
        self.assertFalse(self.changes.wait_for(self.one.spec.uuid, 0))

    def test_a_vcpu_nobody_told_of(self):
        self.see()
        self.one.qemu.vcpu_tids.append(self.one.qemu.start_thread('CPU 2/TCG'))
        self.driver._watch.check()
        self.assertTrue(self.changes.wait_for(self.one.spec.uuid, 30))
        # Told once; the rest is up to who was told.
        self.driver._watch.check()
        self.assertFalse(self.changes.wait_for(self.one.spec.uuid, 0))
        self.assertEqual(3, len(self.see().vcpus))

    def test_monitor_that_fails(self):
        for error in (
            libvirt.libvirtError('busy'),
            qemu_monitor.UnexpectedAnswer('x'),
            bounded_calls.CallTimedOut('x'),
        ):
            self.ask.side_effect = error
            self.connection.on_event(self.one.spec.uuid)
            self.assertEqual(
                self.one.qemu.vcpu_tids,
                [vcpu.tid for vcpu in self.see().vcpus],
            )

    def test_one_timeout_per_scan(self):
        for _ in range(3):
            self.add()
        self.ask.side_effect = bounded_calls.CallTimedOut('x')
        self.assertEqual(4, len(self.driver.domains()))
        self.assertEqual(1, self.ask.call_count)

    def test_monitor_that_lies(self):
        self.ask.side_effect = lambda domain: {0: 1, 1: domain.qemu.pid}
        self.assertEqual([1], [vcpu.index for vcpu in self.see().vcpus])

    def test_monitor_not_wanted(self):
        self.driver._monitor_timeout_s = 0
        self.assertEqual(2, len(self.see().vcpus))
        self.ask.assert_not_called()

    def test_about_to_start(self):
        starting = self.add(vcpus=0)
        self.assertIsNone(self.see(starting))
        starting.qemu.vcpu_tids.append(starting.qemu.start_thread('CPU 0/TCG'))
        self.assertEqual(1, len(self.see(starting).vcpus))

    def test_without_a_process(self):
        self.one.qemu.stop()
        self.assertIsNone(self.see())
        self.assertEqual([], self.driver.domains())

    def test_ended(self):
        self.see()
        self.one.number = -1
        self.assertIsNone(self.see())
        del self.connection.domains[self.one.spec.uuid]
        self.assertIsNone(self.see())
        self.assertEqual([], self.driver.domains())
        self.assertEqual({}, self.driver._known)

    def test_ended_between_listing_and_inspection(self):
        self.one.error = NoSuchDomain('none')
        self.assertEqual([], self.driver.domains())

    def test_one_that_hangs_does_not_hide_the_others(self):
        other = self.add()
        first = self.driver.domains()
        self.connection.on_event(self.one.spec.uuid)
        self.one.error = libvirt.libvirtError('hangs')
        self.assertEqual(first, self.driver.domains())
        # One that was never seen can not be told.
        self.connection.on_state(False)
        self.assertEqual(
            [other.spec.uuid], [one.uuid for one in self.driver.domains()]
        )

    def test_a_dead_connection_is_noticed(self):
        self.connection.alive = False
        self.assertRaises(base.HypervisorUnavailable, self.see)
        self.assertEqual(1, self.connection.losses)
        self.assertFalse(self.driver.connected)
        self.assertRaises(base.HypervisorUnavailable, self.driver.domains)

    def test_no_uuid(self):
        self.assertIsNone(self.driver.domain('not one'))

    def test_any_form_of_a_uuid(self):
        self.assertIsNotNone(self.driver.domain(self.one.spec.uuid.upper()))

    def test_start_twice(self):
        self.assertRaises(RuntimeError, self.driver.start, print)

    def test_stopped(self):
        self.driver.stop()
        self.driver.stop()
        self.assertRaises(base.HypervisorUnavailable, self.driver.domains)
