# SPDX-License-Identifier: Apache-2.0

"""CPU time of real domains."""

import threading
import time

from oslotest import base as test_base

from vsched_agent.accounting import base
from vsched_agent.accounting import readers
from vsched_agent.accounting import usage
from vsched_agent.host import schedstat
from vsched_agent.hypervisor.libvirt import driver
from vsched_agent.tests import fixtures
from vsched_agent.tests import hypervisor_suite


class UsageTest(hypervisor_suite.Watching, test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)
        self.hypervisor = self.started()
        self.meter = usage.UsageMeter(readers.of_kind(self.hypervisor.kind))
        self.addCleanup(self.meter.close)

    def make_hypervisor(self):
        return driver.LibvirtHypervisor(fixtures.URI)

    def sample(self, uuid):
        domains = [
            one for one in self.hypervisor.domains() if one.uuid == uuid
        ]
        return self.meter.sample(domains, {})

    def test_agrees_with_libvirt(self):
        guest = self.useFixture(fixtures.Guest('burn', vcpus=2))

        def told_us():
            return sum(vcpu[2] for vcpu in guest.handle.vcpus()[0]) / 1000

        # Two readings of libvirt enclose each end of the time that is sampled:
        # whoever reads may have to wait for a CPU in between.
        first_us, began_s = told_us(), time.monotonic()
        self.assertEqual([], self.sample(guest.uuid))
        second_us = told_us()
        used_us = interval_us = 0
        for number in range(4):
            threading.Event().wait(0.5)
            if number == 3:
                third_us = told_us()
            (found,) = self.sample(guest.uuid)
            used_us += found.guest_us
            interval_us += found.interval_us
        last_us, took_s = told_us(), time.monotonic() - began_s
        self.assertLess(0, used_us)
        # Clock and counters are not read at one moment either.
        self.assertLessEqual(used_us, 2_000_000 * took_s)
        self.assertLess(0, interval_us)
        self.assertLessEqual(interval_us, 1_000_000 * took_s)
        # libvirt reads ticks of 10 ms.
        error_us = 0.2 * used_us + 50_000
        self.assertLess(third_us - second_us, used_us + error_us)
        self.assertGreater(last_us - first_us, used_us - error_us)

    def test_a_vcpu_plugged_in_is_counted_from_its_birth(self):
        guest = self.useFixture(fixtures.Guest('burn', vcpus=1, max_vcpus=2))
        self.sample(guest.uuid)
        guest.handle.setVcpusFlags(2, 1)
        self.eventually(
            lambda: len(self.one(self.hypervisor, guest.uuid).vcpus) == 2,
            'the second vCPU',
        )
        domain = self.one(self.hypervisor, guest.uuid)
        plugged = domain.vcpus[1].tid
        counted = []

        def has_run():
            self.sample(guest.uuid)
            used = {
                use.tid: use.run_ns
                for use in self.meter.readings[guest.uuid].threads
                if use.role is base.Role.VCPU
            }
            self.assertEqual({vcpu.tid for vcpu in domain.vcpus}, used.keys())
            counted.append(used[plugged])
            # Its guest brings it up in its own time.
            return sum(counted) > 0

        before_ns = schedstat.read(plugged).run_ns
        self.eventually(has_run, 'the second vCPU to run')
        self.assertLessEqual(before_ns, sum(counted))
        self.assertLessEqual(sum(counted), schedstat.read(plugged).run_ns)

    def test_roles(self):
        guest = self.useFixture(fixtures.Guest('burn', iothreads=1))
        self.sample(guest.uuid)
        threading.Event().wait(1)
        (found,) = self.sample(guest.uuid)
        reading = self.meter.readings[guest.uuid]
        domain = self.one(self.hypervisor, guest.uuid)
        roles = {use.tid: use.role for use in reading.threads}
        self.assertIs(base.Role.EMULATOR, roles[domain.pid])
        self.assertEqual(
            {base.Role.IOTHREAD}, {roles[tid] for tid in domain.iothread_tids}
        )
        spent = reading.by_role_ns()
        self.assertLess(0, spent[base.Role.EMULATOR])
        self.assertLess(0, found.wakeups)
        # Of one clock and of many counters: a tick apart at most, each.
        self.assertAlmostEqual(
            sum(spent.values()) - spent[base.Role.VCPU],
            reading.direct_ns,
            delta=10_000_000 * len(roles),
        )

    def test_an_end_is_no_error(self):
        guest = self.useFixture(fixtures.Guest('burn'))
        domains = self.hypervisor.domains()
        self.meter.sample(domains, {})
        guest.stop()
        self.meter.sample(domains, {})
        self.assertEqual([], self.sample(guest.uuid))
        self.assertEqual(0, self.meter._reader.files.open)
