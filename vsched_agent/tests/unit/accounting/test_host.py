# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.accounting import host

LINE = 'cpu%d %s\n'


class TestHostMeter(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.patch(host.os, 'sysconf', lambda name: 100)
        self.now_ns = 10 ** 9
        self.patch(host.time, 'monotonic_ns', lambda: self.now_ns)
        self.cpus = {0: [0] * 10, 1: [0] * 10}
        self.write()
        self.meter = host.HostMeter(self.folder)

    def write(self):
        pathlib.Path(self.folder, 'stat').write_text(
            'cpu  1 2 3 4 5 6 7 8 9 10\n' + ''.join(
                LINE % (cpu, ' '.join(map(str, fields)))
                for cpu, fields in self.cpus.items()) +
            'intr 5 6\nctxt 9\n')

    def later(self, seconds=1, **ticks):
        self.now_ns += seconds * 10 ** 9
        for name, grown in ticks.items():
            for fields in self.cpus.values():
                fields[{'user': 0, 'idle': 3, 'iowait': 4, 'irq': 5,
                        'softirq': 6, 'steal': 7}[name]] += grown
        self.write()

    def test_the_first_call_only_reads(self):
        self.assertIsNone(self.meter.sample(0))

    def test_everything_is_somebodys(self):
        self.meter.sample(0)
        self.later(user=60, idle=25, iowait=5, softirq=2, steal=10)
        found = self.meter.sample(900_000)
        self.assertEqual(
            (2, 1_000_000, 600_000, 200_000, 40_000, 900_000, 300_000),
            (found.cpus, found.interval_us, found.idle_us, found.steal_us,
             found.irq_us, found.instances_us, found.own_us))
        self.assertEqual(
            found.cpus * found.interval_us, found.idle_us + found.steal_us +
            found.instances_us + found.own_us)

    def test_a_late_pass_loses_nothing(self):
        self.meter.sample(0)
        self.later(seconds=7, idle=650)
        found = self.meter.sample(0)
        self.assertEqual((7_000_000, 1_000_000), (
            found.interval_us, found.own_us))

    def test_cpus_that_come_or_go_are_left_out_once(self):
        self.meter.sample(0)
        self.cpus[2] = [0] * 10
        self.later(idle=100)
        self.assertEqual(2, self.meter.sample(0).cpus)
        self.later(idle=100)
        self.assertEqual(3, self.meter.sample(0).cpus)
        del self.cpus[0]
        self.later(idle=100)
        self.assertEqual(2, self.meter.sample(0).cpus)

    def test_accounts_ahead_of_the_clock_make_nothing_negative(self):
        self.meter.sample(0)
        self.later(idle=101)
        self.assertEqual(0, self.meter.sample(30_000).own_us)

    def test_what_can_not_be_read_is_left_out(self):
        self.meter.sample(0)
        pathlib.Path(self.folder, 'stat').write_text('cpu0 1 2\n')
        self.assertIsNone(self.meter.sample(0))
        os.remove(os.path.join(self.folder, 'stat'))
        self.assertIsNone(self.meter.sample(0))
