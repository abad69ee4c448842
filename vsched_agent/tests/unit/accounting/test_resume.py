# SPDX-License-Identifier: Apache-2.0

"""An agent continues from the counters of the last one."""

import json

import ddt
from oslotest import base as test_base

from vsched_agent.accounting import direct
from vsched_agent.accounting import disk
from vsched_agent.accounting import host
from vsched_agent.accounting import network
from vsched_agent.accounting import qemu
from vsched_agent.accounting import usage
from vsched_agent.hypervisor import base
from vsched_agent.tests.unit.accounting import test_usage

MS, UUID, domain = test_usage.MS, test_usage.UUID, test_usage.domain


@ddt.ddt
class ResumeTest(test_usage.MeterCase):
    def setUp(self):
        super().setUp()
        self.meter = self.new_meter()

    def new_meter(self, boot_id='boot'):
        """What an agent that has just started has."""
        reader = qemu.ProcessReader(
            self.max_open_files,
            str(self.proc.path),
            direct.DirectMeter(lambda pid: self.clock_ns),
        )
        reader._now_ticks = lambda: self.now_ticks
        meter = usage.UsageMeter(reader, boot_id=boot_id)
        self.addCleanup(meter.close)
        return meter

    def killed(self, boot_id='boot'):
        """The agent dies; the next one has what the journal holds."""
        checkpoint = json.loads(json.dumps(self.meter.checkpoint()))
        self.meter = self.new_meter(boot_id)
        return self.meter.resume(checkpoint)

    def test_time_without_an_agent_is_counted(self):
        self.proc.set(1, 5000 * MS, 100 * MS)
        self.sample(domain(1))
        self.later(4000)
        self.assertTrue(self.killed())
        self.proc.set(1, 7400 * MS, 150 * MS)
        (found,) = self.sample(domain(1))
        self.assertEqual(
            (4_000_000, 2_400_000, 50_000),
            (found.interval_us, found.guest_us, found.wait_us),
        )
        self.later()
        self.proc.set(1, 8000 * MS, 150 * MS)
        (found,) = self.sample(domain(1))
        self.assertEqual(
            (1_000_000, 600_000), (found.interval_us, found.guest_us)
        )

    def test_sums_are_those_of_an_agent_that_lived(self):
        self.proc.set(1, 0)
        self.sample(domain(1))
        guest_us = interval_us = 0
        for number in range(1, 20):
            self.later(700)
            self.proc.set(1, number * 300 * MS)
            if number % 3 == 0:
                self.assertTrue(self.killed())
            (found,) = self.sample(domain(1))
            guest_us += found.guest_us
            interval_us += found.interval_us
        self.assertEqual((19 * 300_000, 19 * 700_000), (guest_us, interval_us))

    def test_not_after_a_boot(self):
        self.proc.set(1, 5000 * MS)
        self.sample(domain(1))
        self.later()
        self.assertFalse(self.killed('another'))
        self.assertEqual([], self.sample(domain(1)))

    def test_not_after_a_long_time(self):
        self.proc.set(1, 5000 * MS)
        self.sample(domain(1))
        self.later(usage.RESUME_S * 1000 + 1)
        self.assertFalse(self.killed())
        self.assertEqual([], self.sample(domain(1)))

    def test_an_instance_that_came_meanwhile_is_only_read(self):
        self.proc.set(1, 5000 * MS)
        self.sample(domain(1))
        self.later()
        self.killed()
        other = test_usage.domain(2, uuid='another')
        self.proc.set(2, 900 * MS)
        self.assertEqual(
            [UUID],
            [one.instance_uuid for one in self.sample(domain(1), other)],
        )

    @ddt.data(
        {},
        {'boot_id': 'boot'},
        {'boot_id': 'boot', 'read_ns': 'x'},
        {'boot_id': 'boot', 'read_ns': 1, 'reader': []},
        {
            'boot_id': 'boot',
            'read_ns': 1,
            'reader': {'instances': {'a': {'threads': [[1]]}}, 'direct': {}},
        },
    )
    def test_what_can_not_be_read_is_not_used(self, checkpoint):
        self.now_ns = 2
        self.assertFalse(self.meter.resume(checkpoint))
        self.proc.set(1, 5000 * MS)
        self.assertEqual([], self.sample(domain(1)))


class PartsTest(test_base.BaseTestCase):
    """What each part says of itself is what it takes up again."""

    def test_packets(self):
        one, other = network.PacketMeter(), network.PacketMeter()
        one._last = {(UUID, 'tap0'): network.Packets(3, 4)}
        other.resume(json.loads(json.dumps(one.checkpoint())))
        self.assertEqual(one._last, other._last)

    def test_requests(self):
        one, other = (
            disk.RequestMeter(disk.BlockingPoller(lambda uuids: {}))
            for _ in range(2)
        )
        one._last = {UUID: {'vda': base.DiskCounters(5, 6)}}
        other.resume(json.loads(json.dumps(one.checkpoint())))
        self.assertEqual(one._last, other._last)

    def test_host(self):
        one, other = host.HostMeter(), host.HostMeter()
        self.assertIsNone(one.checkpoint())
        one.read()
        other.resume(json.loads(json.dumps(one.checkpoint())))
        self.assertEqual(one._last, other._last)
        self.assertIsNotNone(other.read())
        self.assertRaises(
            ValueError,
            other.resume,
            {'read_ns': 1, 'cpus': {'cpu0': [1]}, 'owed_us': 0},
        )
