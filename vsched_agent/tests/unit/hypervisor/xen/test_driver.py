# SPDX-License-Identifier: Apache-2.0

"""The driver of Xen, with a daemon that only pretends."""

import uuid as uuids

import libvirt
from oslotest import base as test_base

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.xen import driver
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.tests import fake_libxl
from vsched_agent.tests import hypervisor_suite


class XenCase(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.daemon = self.useFixture(fake_libxl.FakeLibxl())

    def make_hypervisor(self, **options):
        return driver.XenHypervisor(
            **{'watch_interval_s': 0.02, 'call_timeout_s': 30, **options}
        )

    def start_domain(
        self, vcpus=1, max_vcpus=None, extra_specs=None, pins=None
    ):
        uuid = str(uuids.uuid4())
        self.daemon.start_domain(uuid, vcpus, extra_specs, pins)
        return uuid


class SuiteTest(XenCase, hypervisor_suite.HypervisorSuite):
    disk = 'xvda'
    reboot_keeps_threads = False

    def start_domain_with_disk(self):
        uuid = str(uuids.uuid4())
        self.daemon.start_domain(uuid, disks=('xvda',))
        return uuid

    def read_blocks(self, uuid):
        self.daemon.domains[uuid].reads += 1

    def stop_domain(self, uuid):
        self.daemon.stop_domain(uuid)

    def set_extra_specs(self, uuid, extra_specs):
        self.daemon.set_extra_specs(uuid, extra_specs)

    def set_server(self, uuid, server):
        self.daemon.set_server(uuid, server)

    def plug_vcpus(self, uuid, count):
        self.daemon.domains[uuid].vcpus = count

    def pin_vcpu(self, uuid, index, cpu):
        self.daemon.domains[uuid].pins[index] = frozenset({cpu})

    def reboot_domain(self, uuid):
        self.daemon.reboot_domain(uuid)

    def lose_connection(self):
        self.daemon.set_reachable(False)

    def regain_connection(self):
        self.daemon.set_reachable(True)


class DriverTest(XenCase, hypervisor_suite.Watching):
    def test_the_first_domain_is_no_instance(self):
        hypervisor = self.started()
        self.assertEqual([], hypervisor.domains())
        self.assertIsNone(hypervisor.domain(self.daemon.DOM0))

    def test_vcpus_are_numbers_of_no_thread(self):
        uuid = self.start_domain(vcpus=2)
        domain = self.one(self.started(), uuid)
        domid = self.daemon.domains[uuid].domid
        self.assertEqual(
            [(domid, 0), (domid, 1)],
            [vcpu_ids.decode(vcpu.tid) for vcpu in domain.vcpus],
        )
        self.assertEqual((), domain.emulator_tids + domain.iothread_tids)
        self.assertEqual(
            ('vif%d.0' % domid,),
            tuple(one.device for one in domain.interfaces),
        )

    def test_names_of_an_emulated_interface(self):
        uuid = self.start_domain()
        self.daemon.domains[uuid].device = 'vif1.0-emu'
        self.assertEqual(
            (base.Interface('vif1.0'), base.Interface('vif1.0-emu')),
            self.one(self.started(), uuid).interfaces,
        )

    def test_read_once_until_an_event(self):
        uuid = self.start_domain()
        hypervisor = self.started(watch_interval_s=3600)
        first = self.one(hypervisor, uuid)
        self.assertIs(first, self.one(hypervisor, uuid))
        self.assertEqual(1, self.daemon.domains[uuid].asked)
        self.daemon.event(uuid)
        self.assertEqual([first], hypervisor.domains())
        self.assertEqual(2, self.daemon.domains[uuid].asked)

    def test_unchanged_domains_are_not_reported(self):
        uuid = self.start_domain()
        hypervisor = self.started(watch_interval_s=3600)
        self.one(hypervisor, uuid)
        self.changes.forget()
        hypervisor.check_changes()
        self.assertFalse(self.changes.wait_for(uuid, 0))
        self.daemon.domains[uuid].vcpus = 2
        hypervisor.check_changes()
        self.assertTrue(self.changes.wait_for(uuid, 0))
        # Reported once; the rest is up to who was told.
        hypervisor.check_changes()
        self.assertFalse(self.changes.wait_for(uuid, 0))

    def test_one_that_hangs_does_not_hide_the_others(self):
        hanging, other = self.start_domain(), self.start_domain()
        hypervisor = self.started(watch_interval_s=3600)
        first = hypervisor.domains()
        self.daemon.event(hanging)
        self.daemon.domains[hanging].error = libvirt.libvirtError('hangs')
        self.assertEqual(first, hypervisor.domains())
        self.daemon.set_reachable(False)
        self.daemon.set_reachable(True)
        self.assertEqual([other], [one.uuid for one in hypervisor.domains()])

    def test_one_that_hangs_does_not_keep_the_others_from_checks(self):
        hanging, other = self.start_domain(), self.start_domain()
        hypervisor = self.started(watch_interval_s=3600)
        self.assertEqual(2, len(hypervisor.domains()))
        self.changes.forget()
        self.daemon.domains[hanging].error = libvirt.libvirtError('hangs')
        self.daemon.domains[other].vcpus = 2
        hypervisor.check_changes()
        self.assertTrue(self.changes.wait_for(other, 0))

    def test_times_of_vcpus_and_of_the_first_domain(self):
        uuid = self.start_domain(vcpus=2)
        hypervisor = self.started()
        self.daemon.domains[uuid].times_ns = {0: 7, 1: 5}
        self.daemon.domains[self.daemon.DOM0].times_ns = {0: 11, 1: 2}
        self.assertEqual((7, 5), hypervisor.vcpu_times_ns(uuid))
        self.assertEqual((2, 13), hypervisor.host_time())
        self.daemon.stop_domain(uuid)
        self.assertIsNone(hypervisor.vcpu_times_ns(uuid))
        self.daemon.set_reachable(False)
        for ask in (
            lambda: hypervisor.vcpu_times_ns(uuid),
            hypervisor.host_time,
        ):
            self.assertRaises(base.HypervisorUnavailable, ask)

    def test_a_defined_domain_that_has_stopped_has_no_times(self):
        uuid = self.start_domain()
        hypervisor = self.started(watch_interval_s=3600)
        domain = self.daemon.domains[uuid]
        domain.domid = -1
        self.assertIsNone(hypervisor.vcpu_times_ns(uuid))
        domain.error = fake_libxl.Failure(libvirt.VIR_ERR_INTERNAL_ERROR)
        self.assertRaises(
            base.HypervisorUnavailable, hypervisor.vcpu_times_ns, uuid
        )

    def test_ended_between_listing_and_inspection(self):
        uuid = self.start_domain()
        hypervisor = self.started(watch_interval_s=3600)
        self.daemon.domains[uuid].error = fake_libxl.Failure(
            libvirt.VIR_ERR_NO_DOMAIN
        )
        self.assertEqual([], hypervisor.domains())

    def test_a_disk_without_counters(self):
        uuid = self.start_domain()
        domain = self.daemon.domains[uuid]
        domain.disks = ('xvda', 'xvdb')
        hypervisor = self.started(watch_interval_s=3600)
        self.one(hypervisor, uuid)
        domain.disks = ('xvdb',)
        self.assertEqual(
            {uuid: {'xvdb': base.DiskCounters(0, 0)}},
            hypervisor.disk_counters((uuid,)),
        )

    def test_start_twice(self):
        hypervisor = self.started()
        self.assertRaises(RuntimeError, hypervisor.start, print)

    def test_no_uuid(self):
        self.assertIsNone(self.started().domain('not one'))
