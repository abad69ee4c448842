# SPDX-License-Identifier: Apache-2.0

"""Domains, and the threads of the first one that serve them."""

import dataclasses
import json

import fixtures
from oslotest import base as test_base

from vsched_agent.accounting.base import Role
from vsched_agent.accounting import readers
from vsched_agent.accounting.xen import backends
from vsched_agent.accounting.xen import host
from vsched_agent.accounting.xen import reader
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.xen import driver
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.tests import fake_dom0

MS = 1_000_000
ONE = fake_dom0.domain('one', 1, 2)


class ReaderTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.dom0 = self.useFixture(fake_dom0.FakeDom0())
        self.now_ns = 500 * 10**9
        for module, name, now in (
            (reader.time, 'monotonic', lambda: self.now_ns / 1e9),
            (reader.time, 'monotonic_ns', lambda: self.now_ns),
        ):
            self.useFixture(fixtures.MockPatchObject(module, name, now))
        self.dom0.times_ns['one'] = [100 * MS, 50 * MS]
        self.dom0.thread(40, 'vif1.0-q0-guest-rx', 7 * MS)
        self.dom0.thread(42, '1.xvda-0', 9 * MS)
        self.reader = self.new_reader()

    def new_reader(self):
        made = reader.DomainReader(
            self.dom0, 100, self.dom0.proc, self.dom0.sys
        )
        self.addCleanup(made.close)
        made._now_ticks = lambda: self.now_ns // 10**7
        return made

    def later(self, ms=1000):
        self.now_ns += ms * MS

    def uses(self, domain=ONE):
        """Run times by thread and vCPU, of the next reading."""
        found = self.reader.read(domain)
        return {
            use.tid: (use.role, use.run_ns // MS)
            for use in found.threads
            if use.run_ns
        }

    def test_of_drivers(self):
        made = readers.sources_of(driver.XenHypervisor())
        self.assertIsInstance(made.reader, reader.DomainReader)
        self.assertIsInstance(made.host, host.FirstDomainMeter)
        self.assertFalse(made.disks_answer)

    def test_vcpus_and_threads(self):
        self.assertIsNone(self.reader.read(ONE))
        self.later()
        self.dom0.times_ns['one'] = [400 * MS, 60 * MS]
        self.dom0.thread(40, 'vif1.0-q0-guest-rx', 27 * MS)
        self.dom0.thread(42, '1.xvda-0', 14 * MS)
        found = self.reader.read(ONE)
        self.assertEqual(
            (1000 * MS, 25 * MS, False),
            (found.interval_ns, found.direct_ns, found.vcpus_are_threads),
        )
        self.assertEqual(
            dict.fromkeys(Role, 0)
            | {
                Role.VCPU: 310 * MS,
                Role.VHOST: 20 * MS,
                Role.IOTHREAD: 5 * MS,
            },
            found.by_role_ns(),
        )
        self.assertEqual(
            [one.tid for one in ONE.vcpus],
            [one.tid for one in found.threads if one.role is Role.VCPU],
        )

    def test_a_thread_that_has_started_since(self):
        self.reader.read(ONE)
        self.later()
        ticks = self.now_ns // 10**7 - 10
        self.dom0.thread(50, '1.xvdb-0', 3 * MS, start_ticks=ticks)
        self.assertEqual({50: (Role.IOTHREAD, 3)}, self.uses())
        # Found late: it was there at the reading before.
        self.dom0.thread(51, '1.xvdc-0', 3 * MS, start_ticks=ticks)
        self.later()
        self.assertEqual({}, self.uses())
        self.later()
        self.dom0.thread(51, '1.xvdc-0', 5 * MS, start_ticks=ticks)
        self.assertEqual({51: (Role.IOTHREAD, 2)}, self.uses())

    def test_threads_of_an_interface_with_a_name(self):
        named = dataclasses.replace(ONE, interfaces=(base.Interface('web1'),))
        self.reader.read(named)
        self.later()
        ticks = self.now_ns // 10**7 - 10
        self.dom0.thread(50, 'web1-q0-dealloc', 3 * MS, start_ticks=ticks)
        self.assertEqual({50: (Role.VHOST, 3)}, self.uses(named))

    def test_threads_of_a_driver_that_reconnects(self):
        self.reader.read(ONE)
        self.later(int(1000 * reader.NEW_S) + 1000)
        self.dom0.threads.end(42)
        self.dom0.thread(
            60, '1.xvda-0', 4 * MS, start_ticks=self.now_ns // 10**7 - 5
        )
        self.assertEqual({60: (Role.IOTHREAD, 4)}, self.uses())
        self.reader.close()
        self.assertEqual(0, self.reader.files.open)

    def test_restarted_as_another_domain(self):
        self.reader.read(ONE)
        self.later()
        self.dom0.threads.end(40)
        self.dom0.threads.end(42)
        ticks = self.now_ns // 10**7 - 10
        self.dom0.thread(70, '2.xvda-0', 6 * MS, start_ticks=ticks)
        self.dom0.times_ns['one'] = [30 * MS, 20 * MS]
        again = fake_dom0.domain('one', 2, 2)
        self.assertEqual(
            {
                vcpu_ids.encode(2, 0): (Role.VCPU, 30),
                vcpu_ids.encode(2, 1): (Role.VCPU, 20),
                70: (Role.IOTHREAD, 6),
            },
            self.uses(again),
        )

    def test_one_that_has_ended_keeps_its_reading(self):
        self.reader.read(ONE)
        times_ns = self.dom0.times_ns.pop('one')
        self.later()
        self.assertIsNone(self.reader.read(ONE))
        self.later()
        self.dom0.times_ns['one'] = [times_ns[0] + 8 * MS, times_ns[1]]
        self.assertEqual({ONE.vcpus[0].tid: (Role.VCPU, 8)}, self.uses())

    def test_the_hypervisor_does_not_answer(self):
        self.reader.read(ONE)
        self.later()
        self.dom0.answers = False
        self.assertRaises(base.HypervisorUnavailable, self.reader.read, ONE)
        self.later()
        self.dom0.answers = True
        self.dom0.times_ns['one'][0] += 5 * MS
        self.dom0.thread(42, '1.xvda-0', 11 * MS)
        found = self.reader.read(ONE)
        self.assertEqual(
            (2000 * MS, 5 * MS, 2 * MS),
            (found.interval_ns, found.guest.run_ns, found.direct_ns),
        )

    def test_resume(self):
        self.reader.read(ONE)
        stored = json.loads(json.dumps(self.reader.checkpoint()))
        self.reader.close()
        self.later()
        self.dom0.times_ns['one'][1] += 40 * MS
        self.dom0.thread(40, 'vif1.0-q0-guest-rx', 8 * MS)
        self.reader = self.new_reader()
        self.reader.resume(stored)
        self.assertEqual(
            {ONE.vcpus[1].tid: (Role.VCPU, 40), 40: (Role.VHOST, 1)},
            self.uses(),
        )

    def test_resume_of_a_domain_that_has_restarted(self):
        self.reader.read(ONE)
        stored = self.reader.checkpoint()
        self.later()
        self.dom0.times_ns['one'] = [12 * MS, 0]
        self.reader = self.new_reader()
        self.reader.resume(stored)
        again = fake_dom0.domain('one', 3, 2)
        self.assertEqual(
            {vcpu_ids.encode(3): (Role.VCPU, 12)}, self.uses(again)
        )

    def test_malformed(self):
        for wrong in ({'one': {}}, {'one': []}, {'one': {'threads': [[1]]}}):
            self.assertRaises(
                (LookupError, TypeError, ValueError), self.reader.resume, wrong
            )

    def test_disks_of_those_that_were_read(self):
        self.dom0.disk(1, 5, 6)
        self.assertEqual({}, self.reader.disk_counters(['one']))
        self.reader.read(ONE)
        self.assertEqual(
            {'one': {'51712': (5, 6)}},
            self.reader.disk_counters(['one', 'other']),
        )

    def test_scans_end(self):
        self.reader.read(ONE)
        scans = []
        self.useFixture(
            fixtures.MockPatchObject(
                self.reader._backends, '_scan', lambda: scans.append(1)
            )
        )
        self.later(int(1000 * reader.NEW_S) + 1000)
        # All that were due since.
        self.reader._backends._scanned_s = self.now_ns / 1e9
        self.later(int(1000 * backends.RESCAN_INTERVAL_S))
        self.reader.read(ONE)
        self.assertEqual([], scans)
        # Its definition has changed.
        self.reader.read(fake_dom0.domain('one', 1, 2))
        self.assertEqual([1], scans)
