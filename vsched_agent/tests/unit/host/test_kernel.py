# SPDX-License-Identifier: Apache-2.0

import dataclasses
import gzip
import pathlib
import time

import fixtures
from oslotest import base

from vsched_agent.host import kernel
from vsched_lib.model import reservation


class TestKernelFacts(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.root = self.useFixture(fixtures.TempDir()).path
        self.write('proc/sys/kernel/osrelease', '6.18.2-custom\n')
        self.write('proc/sys/kernel/random/boot_id', 'abc\n')
        self.write('sys/devices/system/cpu/online', '0-1\n')

    def write(self, path, text):
        file = pathlib.Path(self.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            file.write_bytes(text)
        else:
            file.write_text(text)

    def read(self):
        return kernel.KernelFacts.read(self.root)

    def test_what_the_host_says(self):
        self.write('proc/sys/kernel/sched_rt_runtime_us', '900000\n')
        self.write('proc/sys/kernel/sched_deadline_period_max_us', '1000000')
        facts = self.read()
        self.assertEqual(
            ('6.18.2-custom', 'abc', 900_000, 1_000_000, {0, 1}),
            (
                facts.release,
                facts.boot_id,
                facts.rt_runtime_us,
                facts.dl_period_max_us,
                facts.online,
            ),
        )

    def test_what_a_kernel_does_not_tell_is_its_default(self):
        facts = self.read()
        self.assertEqual(
            (950_000, 1_000_000, 100, 4_194_304),
            (
                facts.rt_runtime_us,
                facts.rt_period_us,
                facts.dl_period_min_us,
                facts.dl_period_max_us,
            ),
        )
        self.assertEqual({}, facts.options)

    def test_what_is_admitted_on_two_cpus(self):
        # Measured on Linux 6.18: 2 CPUs of 0.95, less two fair servers.
        self.assertEqual(1_887_438, self.read().expected_units)

    def test_there_was_no_fair_server_before_6_12(self):
        self.write('proc/sys/kernel/osrelease', '6.1.0-42-amd64')
        self.assertEqual({}, self.read().fair_servers)
        self.assertEqual(
            2 * ((950_000 << 20) // 1_000_000), self.read().expected_units
        )

    def test_a_fair_server_that_was_changed(self):
        for name, value in (('runtime', '0'), ('period', '1000000000')):
            self.write(
                'sys/kernel/debug/sched/fair_server/cpu1/' + name, value
            )
        self.assertEqual(
            (50_000_000, 0),
            (self.read().fair_servers[0][0], self.read().fair_servers[1][0]),
        )

    def test_no_bound(self):
        self.write('proc/sys/kernel/sched_rt_runtime_us', '-1')
        self.assertIsNone(self.read().expected_units)

    def test_options_packed_or_plain(self):
        text = 'CONFIG_HZ=250\n# CONFIG_CPUSETS is not set\n'
        self.write('boot/config-6.18.2-custom', text)
        self.assertEqual(
            ('250', 'n'),
            (self.read().options['HZ'], self.read().options['CPUSETS']),
        )
        self.write('proc/config.gz', gzip.compress(b'CONFIG_HZ=1000\n'))
        self.assertEqual('1000', self.read().options['HZ'])

    def test_whether_interrupts_are_kept_apart(self):
        self.assertFalse(self.read().irq_time)
        self.write(
            'boot/config-6.18.2-custom', 'CONFIG_IRQ_TIME_ACCOUNTING=y\n'
        )
        self.assertTrue(self.read().irq_time)
        self.write('proc/cmdline', 'quiet tsc=noirqtime\n')
        self.assertFalse(self.read().irq_time)

    def test_who_may_open_perf_events(self):
        self.assertIsNone(self.read().perf_event_paranoid)
        self.write('proc/sys/kernel/perf_event_paranoid', '3')
        self.assertEqual(3, self.read().perf_event_paranoid)

    def test_settings_are_read_again_without_the_bounds(self):
        self.write('proc/sys/kernel/perf_event_paranoid', '3')
        facts = self.read()
        self.write('proc/sys/kernel/perf_event_paranoid', '2')
        # Newer kernels recompute their sums when it is read.
        self.write('proc/sys/kernel/sched_rt_runtime_us', '-1')
        self.write('sys/kernel/debug/sched/features', 'NO_HRTICK HRTICK_DL')
        self.assertEqual(
            dataclasses.replace(facts, perf_event_paranoid=2, hrtick_dl=True),
            facts.refreshed(self.root),
        )

    def test_the_tick_is_the_resolution_of_the_coarse_clock(self):
        self.patch(time, 'clock_getres', lambda clock: 0.004)
        self.assertEqual(4_000, kernel.tick_us())

    def test_the_least_budget_is_one_the_model_accepts(self):
        facts = dataclasses.replace(self.read(), tick_us=4_000)
        for period_us, runtime_us in facts.least_runtime_us.items():
            self.assertEqual(
                [],
                reservation.Reservation(runtime_us, period_us).problems(
                    reservation.Backend.DEADLINE, facts.tick_us
                ),
            )
            self.assertLess(
                0,
                len(
                    reservation.Reservation(
                        runtime_us - 1, period_us
                    ).problems(reservation.Backend.DEADLINE, facts.tick_us)
                ),
            )
