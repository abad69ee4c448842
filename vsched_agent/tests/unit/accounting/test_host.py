# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.accounting import host
from vsched_lib.contract import messages

LINE = 'cpu%d %s\n'


class TestHostMeter(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.patch(host.os, 'sysconf', lambda name: 100)
        self.now_ns = 10**9
        self.patch(host.time, 'monotonic_ns', lambda: self.now_ns)
        self.cpus = {0: [0] * 10, 1: [0] * 10}
        self.write()
        self.meter = host.HostMeter(self.folder)

    def write(self):
        pathlib.Path(self.folder, 'stat').write_text(
            'cpu  1 2 3 4 5 6 7 8 9 10\n'
            + ''.join(
                LINE % (cpu, ' '.join(map(str, fields)))
                for cpu, fields in self.cpus.items()
            )
            + 'intr 5 6\nctxt 9\n'
        )

    def later(self, seconds=1, **ticks):
        self.now_ns += seconds * 10**9
        for name, grown in ticks.items():
            for fields in self.cpus.values():
                fields[
                    {
                        'user': 0,
                        'idle': 3,
                        'iowait': 4,
                        'irq': 5,
                        'softirq': 6,
                        'steal': 7,
                    }[name]
                ] += grown
        self.write()

    def sample(self, guest_us=0, direct_us=0, rx=0, tx=0):
        total = self.meter.read()
        if total is None:
            return None
        self.samples = [
            messages.UsageSample(
                'u',
                1.0,
                total.interval_us,
                guest_us,
                0,
                direct_us=direct_us,
                net_rx_packets=rx,
                net_tx_packets=tx,
            )
        ]
        return self.meter.account(total, self.samples)

    def assert_adds_up(self, found):
        self.assertEqual(
            found.cpus * found.interval_us,
            found.idle_us
            + found.steal_us
            + found.guest_us
            + found.direct_us
            + found.shared_us
            + found.own_us,
        )

    def test_the_first_call_only_reads(self):
        self.assertIsNone(self.sample())

    def test_everything_is_somebodys(self):
        self.sample()
        self.later(user=60, idle=25, iowait=5, softirq=2, steal=10)
        found = self.sample(800_000, 100_000)
        self.assertEqual(
            messages.HostUsage(
                found.at,
                1_000_000,
                2,
                600_000,
                200_000,
                0,
                800_000,
                100_000,
                0,
                300_000,
            ),
            found,
        )
        self.assert_adds_up(found)

    def test_ends_with_its_interval(self):
        self.patch(
            host.wall_clock.time, 'time_ns', lambda: self.now_ns + 10**15
        )
        read = self.meter._read

        def slow():
            try:
                return read()
            finally:
                self.now_ns += 54 * 10**6

        self.sample()
        self.later(idle=90)
        self.patch(self.meter, '_read', slow)
        self.assertEqual(10**6 + 2, self.sample().at)

    def test_a_late_pass_loses_nothing(self):
        self.sample()
        self.later(seconds=7, idle=650)
        found = self.sample()
        self.assertEqual(
            (7_000_000, 1_000_000), (found.interval_us, found.own_us)
        )

    def test_a_kernel_that_counts_interrupts(self):
        self.meter = host.HostMeter(self.folder, irq_time=True)
        self.sample()
        self.later(idle=50, softirq=2, irq=1)
        found = self.sample(700_000, rx=5000, tx=4000)
        # 54 ms would be too much for what there was of each.
        self.assertEqual(
            (60_000, 54_000, 246_000),
            (found.irq_us, found.shared_us, found.own_us),
        )
        self.assertEqual(54_000, self.samples[0].shared_us)
        self.assert_adds_up(found)
        self.later(idle=50, softirq=1)
        found = self.sample(700_000, rx=5000, tx=4000)
        self.assertEqual((20_000, 20_000), (found.irq_us, found.shared_us))
        self.assert_adds_up(found)

    def test_a_kernel_that_does_not(self):
        self.sample()
        self.later(idle=50, softirq=90)
        found = self.sample(700_000, rx=5000, tx=4000)
        # What it sent was paid where it was sent.
        self.assertEqual(
            (0, 30_000, 270_000), (found.irq_us, found.shared_us, found.own_us)
        )
        self.later(idle=50)
        found = self.sample(990_000, rx=5000)
        self.assertEqual((10_000, 0), (found.shared_us, found.own_us))
        self.assert_adds_up(found)

    def test_cpus_that_come_or_go_are_left_out_once(self):
        self.sample()
        self.cpus[2] = [0] * 10
        self.later(idle=100)
        self.assertEqual(2, self.sample().cpus)
        self.later(idle=100)
        self.assertEqual(3, self.sample().cpus)
        del self.cpus[0]
        self.later(idle=100)
        self.assertEqual(2, self.sample().cpus)

    def test_accounts_ahead_of_the_clock_make_nothing_negative(self):
        self.sample()
        self.later(idle=101)
        self.assertEqual(0, self.sample(30_000).own_us)

    def test_what_clocks_disagree_by_is_made_up_for(self):
        self.sample()
        self.later(idle=60)
        self.assertEqual(0, self.sample(820_000).own_us)
        self.later(idle=60)
        self.assertEqual(30_000, self.sample(750_000).own_us)
        self.later(idle=60)
        self.assertEqual(50_000, self.sample(750_000).own_us)

    def test_not_for_ever(self):
        self.sample()
        self.later(idle=60)
        self.assertEqual(0, self.sample(90_000_000).own_us)
        self.later(idle=10)
        self.assertEqual(1_600_000, self.sample().own_us)

    def test_what_can_not_be_read_is_left_out(self):
        self.sample()
        pathlib.Path(self.folder, 'stat').write_text('cpu0 1 2\n')
        self.assertIsNone(self.sample())
        os.remove(os.path.join(self.folder, 'stat'))
        self.assertIsNone(self.sample())
