# SPDX-License-Identifier: Apache-2.0

"""The simulated hypervisor, with and without real threads."""

import os

from oslotest import base as test_base

from vsched_agent.hypervisor import base
from vsched_agent.tests import hypervisor_suite
from vsched_agent.tests import simulated


class SuiteTest(hypervisor_suite.HypervisorSuite, test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.hypervisor = simulated.SimulatedHypervisor()
        self.addCleanup(self.hypervisor.close)

    def make_hypervisor(self):
        return self.hypervisor

    def start_domain(
        self, vcpus=1, max_vcpus=None, extra_specs=None, pins=None
    ):
        return self.hypervisor.add(
            vcpus, extra_specs=extra_specs, pins=pins
        ).uuid

    def start_domain_with_disk(self):
        return self.hypervisor.add(disks=['vda']).uuid

    def read_blocks(self, uuid):
        self.hypervisor.move_blocks(uuid, 'vda', reads=1)

    def stop_domain(self, uuid):
        self.hypervisor.remove(uuid)

    def set_extra_specs(self, uuid, extra_specs):
        self.hypervisor.change(uuid, extra_specs=dict(extra_specs))

    def set_server(self, uuid, server):
        self.hypervisor.change(uuid, server=server)

    def plug_vcpus(self, uuid, count):
        self.hypervisor.set_vcpus(uuid, count)

    def pin_vcpu(self, uuid, index, cpu):
        self.hypervisor.pin(uuid, index, frozenset({cpu}))

    def reboot_domain(self, uuid):
        self.hypervisor.reboot(uuid)

    def lose_connection(self):
        self.hypervisor.lose_connection()

    def regain_connection(self):
        self.hypervisor.regain_connection()

    # What only a simulated one does

    def test_populate(self):
        hypervisor = self.started()
        hypervisor.populate(5, 4, hypervisor_suite.SPECS)
        domains = hypervisor.domains()
        tids = [vcpu.tid for one in domains for vcpu in one.vcpus]
        self.assertEqual(20, len(set(tids)))

    def test_restart_has_new_threads(self):
        hypervisor = self.started()
        uuid = self.start_domain(
            2, extra_specs=hypervisor_suite.SPECS, pins={1: frozenset({0})}
        )
        self.set_server(uuid, hypervisor_suite.SERVER)
        before = self.one(hypervisor, uuid)
        after = hypervisor.restart(uuid)
        self.assertEqual(before.extra_specs, after.extra_specs)
        self.assertEqual(hypervisor_suite.SERVER, after.server)
        self.assertEqual(frozenset({0}), after.vcpus[1].pinned_cpus)
        self.assertNotEqual(before.vcpus[0].tid, after.vcpus[0].tid)

    def test_unplug(self):
        uuid = self.start_domain(3)
        self.hypervisor.set_vcpus(uuid, 1)
        self.started()
        self.assertEqual(1, len(self.one(self.hypervisor, uuid).vcpus))

    def test_started_away(self):
        self.hypervisor.lose_connection()
        changes = hypervisor_suite.Changes()
        self.hypervisor.start(changes)
        self.assertFalse(self.hypervisor.connected)
        self.assertRaises(base.HypervisorUnavailable, self.hypervisor.domains)
        self.hypervisor.regain_connection()
        self.assertTrue(changes.wait_for(None, self.patience_s))
        self.assertTrue(self.hypervisor.connected)

    def test_start_twice(self):
        self.started()
        self.assertRaises(RuntimeError, self.hypervisor.start, print)


class RealThreadsTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.hypervisor = simulated.SimulatedHypervisor.with_real_threads()
        self.addCleanup(self.hypervisor.close)

    def threads(self, domain):
        return {int(tid) for tid in os.listdir('/proc/%d/task' % domain.pid)}

    def test_threads_come_and_go(self):
        one = self.hypervisor.add(2, iothreads=1)
        two = self.hypervisor.add(2)
        tids = {vcpu.tid for domain in (one, two) for vcpu in domain.vcpus}
        self.assertEqual(4, len(tids))
        self.assertLessEqual(
            tids | set(one.iothread_tids) | set(one.emulator_tids),
            self.threads(one),
        )
        self.hypervisor.remove(one.uuid)
        left = self.threads(two)
        self.assertEqual({vcpu.tid for vcpu in two.vcpus}, left & tids)
        self.hypervisor.set_vcpus(two.uuid, 1)
        self.assertNotIn(two.vcpus[1].tid, self.threads(two))

    def test_the_kernel_counts_them(self):
        domain = self.hypervisor.add(1)
        path = '/proc/%d/task/%d/schedstat' % (domain.pid, domain.vcpus[0].tid)
        with open(path) as file:
            self.assertEqual(3, len(file.read().split()))
