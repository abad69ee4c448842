# SPDX-License-Identifier: Apache-2.0

"""Who serves a domain's devices."""

import ddt
import fixtures
from oslotest import base as test_base

from vsched_agent.accounting.base import Role
from vsched_agent.accounting.xen import backends
from vsched_agent.tests import fake_dom0


@ddt.ddt
class NamesTest(test_base.BaseTestCase):
    @ddt.data(
        ('vif1.0-q0-guest-rx', (1, Role.VHOST)),
        ('vif1.0-q0-dealloc', (1, Role.VHOST)),
        # Cut, by kernels before 5.17.
        ('vif1.0-q0-guest', (1, Role.VHOST)),
        ('vif32751.2-q11-', (32751, Role.VHOST)),
        ('1.xvda-0', (1, Role.IOTHREAD)),
        ('23.xvdb1-3', (23, Role.IOTHREAD)),
        ('blkback.7.xvda', (7, Role.IOTHREAD)),
        ('32751.xvdaaa-', (32751, Role.IOTHREAD)),
        ('vif0.0-q0-dealloc', None),
        ('0.xvda-0', None),
        ('vhost-12', None),
        ('kworker/1:0-events', None),
        ('xenwatch', None),
        ('1.5', None),
    )
    @ddt.unpack
    def test_names(self, comm, expected):
        self.assertEqual(expected, backends.server_of(comm))


class ThreadsTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.dom0 = self.useFixture(fake_dom0.FakeDom0())
        self.now_s = 100.0
        self.useFixture(
            fixtures.MockPatchObject(
                backends.time, 'monotonic', lambda: self.now_s
            )
        )
        self.threads = backends.BackendThreads(self.dom0.proc)

    def test_of_each_domain(self):
        self.dom0.thread(40, 'vif1.0-q0-guest-rx')
        self.dom0.thread(41, 'vif1.0-q0-dealloc')
        self.dom0.thread(42, '1.xvda-0')
        self.dom0.thread(43, '11.xvda-0')
        # Not the kernel's.
        self.dom0.thread(44, '1.xvdb-0', parent=1)
        self.assertEqual(
            {40: Role.VHOST, 41: Role.VHOST, 42: Role.IOTHREAD},
            self.threads.of(1, True),
        )
        self.assertEqual({43: Role.IOTHREAD}, self.threads.of(11, False))
        self.assertEqual({}, self.threads.of(2, False))

    def test_of_named_interfaces(self):
        self.dom0.thread(40, 'web1-q0-guest-rx')
        self.dom0.thread(41, 'web1-q1-dealloc')
        # Cut, by kernels before 5.17.
        self.dom0.thread(42, 'web-2-q0-guest-')
        self.dom0.thread(43, 'vif2.0-q0-dealloc')
        # Not the kernel's.
        self.dom0.thread(44, 'web1-q2-dealloc', parent=1)
        self.assertEqual({}, self.threads.of(1, True))
        self.assertEqual(
            {40: Role.VHOST, 41: Role.VHOST, 42: Role.VHOST},
            self.threads.of(1, False, ['web1', 'web-2']),
        )
        # A name that another domain's threads have gives no one theirs.
        self.assertEqual({}, self.threads.of(1, False, ['vif2.0', 'web']))

    def test_scans_are_rare(self):
        self.threads.of(1, False)
        self.dom0.thread(42, '1.xvda-0')
        self.now_s += backends.RESCAN_INTERVAL_S
        self.assertEqual({}, self.threads.of(1, False))
        self.assertEqual({42: Role.IOTHREAD}, self.threads.of(1, True))
        self.dom0.thread(43, '1.xvdb-0')
        self.now_s += backends.SCAN_INTERVAL_S
        self.assertEqual({42, 43}, self.threads.of(1, False).keys())


class DiskCountersTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.dom0 = self.useFixture(fake_dom0.FakeDom0())

    def test_by_domain_and_disk(self):
        self.dom0.disk(1, 10, 3)
        self.dom0.disk(1, 7, 0, number=51728)
        self.dom0.disk(2, 99, 99)
        self.dom0.interface(1)
        self.assertEqual(
            {1: {'51712': (10, 3), '51728': (7, 0)}},
            backends.disk_counters([1, 3], self.dom0.sys),
        )

    def test_without_counters(self):
        (self.dom0.devices / 'vbd-1-51712').mkdir()
        self.assertEqual({}, backends.disk_counters([1], self.dom0.sys))
        self.dom0.disk(1, 1, 1)
        path = self.dom0.devices / 'vbd-1-51712' / 'statistics' / 'rd_req'
        path.write_text('none\n')
        self.assertEqual({}, backends.disk_counters([1], self.dom0.sys))

    def test_no_xen(self):
        self.assertEqual(
            {}, backends.disk_counters([1], self.dom0.sys + '/nowhere')
        )
