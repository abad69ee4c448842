# SPDX-License-Identifier: Apache-2.0

"""The first domain's CPU time, divided among what it did for a guest.

A guest sends packets and reads blocks. What the agent's meter reports is
compared with the other books of a real Xen: the toolstack's and libvirt's
counters.
"""

import pathlib
import time

import fixtures

from vsched_agent.accounting.base import Role
from vsched_agent.accounting import usage
from vsched_agent.hypervisor.xen import driver
from vsched_agent.tests.functional.xen import xen_case
from vsched_agent.tests import hypervisor_suite

#: Passes of a second or so.
PASSES = 15
#: What the guest does, per second.
SENDS_PER_S, READS_PER_S = 400, 150
#: What two books of the same may differ by, and in all, in microseconds: the
#: toolstack prints tenths of seconds. What happens between their readings is
#: added.
BOOKS_TOLERANCE, BOOKS_US = 0.03, 500_000
#: Of the time of all CPUs, what the parts' sum may differ by.
SUM_TOLERANCE = 0.01


def toolstack_us(name):
    """CPU time of a domain, of which the toolstack prints seconds."""
    return round(float(xen_case.run('xl', 'list', name).split()[-1]) * 1e6)


class TestAccounting(xen_case.XenCase, hypervisor_suite.Watching):
    patience_s = xen_case.PATIENCE_S

    def setUp(self):
        super().setUp()
        self.hypervisor = self.started()
        self.meter = usage.meter_of(self.hypervisor, False)
        self.addCleanup(self.meter.close)
        self.roles_ns = dict.fromkeys(Role, 0)

    def make_hypervisor(self, **options):
        return driver.XenHypervisor(
            call_timeout_s=60.0, keepalive_s=20, watch_interval_s=5.0
        )

    def passes(self, count):
        """Return the host's usage and the samples of each pass."""
        found = []
        for _ in range(count):
            time.sleep(1)
            self.last_s = time.monotonic()
            samples = self.meter.sample(self.hypervisor.domains(), {})
            self.assertIsNotNone(self.meter.host)
            for reading in self.meter.readings.values():
                for role, ran_ns in reading.by_role_ns().items():
                    self.roles_ns[role] += ran_ns
            found.append((self.meter.host, samples))
        return found

    def disk(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'disk')
        with open(path, 'wb') as file:
            file.truncate(16 << 20)
        device = xen_case.loop_device(path)
        self.addCleanup(xen_case.run, 'losetup', '--detach', device)
        return xen_case.disk_xml(device)

    def loaded_guest(self):
        """Start a guest that does both without an end."""
        return self.guest(
            words='vsched.ip=198.18.0.2/24 '
            'vsched.run=send:198.18.0.1:9:%d:1:64:0 '
            'vsched.run=read:/dev/xvda:%d:1:4096:0'
            % (SENDS_PER_S, READS_PER_S),
            devices='<interface type="bridge"><source bridge="xenbr0"/>'
            '</interface>' + self.disk(),
        )

    def test_sums(self):
        guest = self.loaded_guest()

        def books():
            return (
                toolstack_us('Domain-0'),
                toolstack_us(guest.name),
                guest.handle.interfaceStats('vif%d.0' % guest.domid)[5],
                guest.handle.blockStats('xvda')[0],
            )

        began_s = time.monotonic()
        self.meter.sample(self.hypervisor.domains(), {})
        before = books()
        between_s = time.monotonic() - began_s
        found = self.passes(PASSES)
        first_us, guest_us, packets, reads = (
            now - then for now, then in zip(books(), before, strict=True)
        )
        between_s += time.monotonic() - self.last_s
        hosts = [one for one, _ in found]
        samples = [one for _, some in found for one in some]
        self.assertEqual({guest.uuid}, {one.instance_uuid for one in samples})
        self.assertEqual(PASSES, len(samples))

        # What the first domain does is found.
        self.assertGreater(packets, 100)
        self.assertAlmostEqual(
            packets,
            sum(one.net_tx_packets for one in samples),
            delta=BOOKS_TOLERANCE * packets + SENDS_PER_S * between_s,
        )
        self.assertGreater(reads, 50)
        self.assertAlmostEqual(
            reads,
            sum(one.disk_read_requests for one in samples),
            delta=BOOKS_TOLERANCE * reads + READS_PER_S * between_s,
        )
        for role in (Role.VHOST, Role.IOTHREAD):
            self.assertGreater(self.roles_ns[role], 0, role)

        # Sums agree with the toolstack's, and have all that the CPUs did.
        def same(one_us, other_us):
            self.assertAlmostEqual(
                one_us,
                other_us,
                # Both domains have one vCPU.
                delta=BOOKS_TOLERANCE * one_us + BOOKS_US + 1e6 * between_s,
            )

        same(guest_us, sum(one.guest_us for one in hosts))
        divided_us = sum(
            one.direct_us + one.shared_us + one.own_us for one in hosts
        )
        same(first_us, divided_us)
        # Domains are not read at the same moment as the host.
        surplus_us = self.meter.checkpoint()['host']['owed_us']
        self.assertAlmostEqual(
            1,
            (
                divided_us
                + sum(one.guest_us + one.idle_us for one in hosts)
                - surplus_us
            )
            / sum(one.cpus * one.interval_us for one in hosts),
            delta=SUM_TOLERANCE,
        )
        self.assertEqual(
            {self.connection.getInfo()[2]}, {one.cpus for one in hosts}
        )
