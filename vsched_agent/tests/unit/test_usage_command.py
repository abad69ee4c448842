# SPDX-License-Identifier: Apache-2.0

import argparse
import contextlib
import io
import json
from unittest import mock

from oslotest import base

from vsched_agent.accounting.base import Role
from vsched_agent.cmd import usage
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.tests import simulated
from vsched_lib.contract import messages


class TestUsage(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.hypervisor = simulated.SimulatedHypervisor()
        self.hypervisor.start(lambda uuid: None)
        self.addCleanup(self.hypervisor.stop)
        self.one = self.hypervisor.add(2)

    def test_every_interval_adds_up(self):
        found = list(usage.intervals(self.hypervisor, 0.2, 2))
        self.assertEqual(2, len(found))
        for one in found:
            self.assertEqual({self.one.uuid: self.one.name}, one.names)
            self.assertEqual(
                [self.one.uuid],
                [sample.instance_uuid for sample in one.samples],
            )
            whole = one.host
            told_us = (
                whole.idle_us
                + whole.steal_us
                + whole.own_us
                + whole.guest_us
                + whole.direct_us
                + whole.shared_us
            )
            self.assertAlmostEqual(
                1, told_us / (whole.cpus * whole.interval_us), delta=0.2
            )

    def test_disks_of_the_interval_itself(self):
        disk = self.hypervisor.add(disks=['vda']).uuid
        found = usage.intervals(
            self.hypervisor,
            0.1,
            1,
            lambda _: self.hypervisor.move_blocks(disk, 'vda', 7, 8),
        )
        (sample,) = (
            one for one in next(found).samples if one.instance_uuid == disk
        )
        self.assertEqual(
            (7, 8), (sample.disk_read_requests, sample.disk_write_requests)
        )

    def interval(self, irq_time=False):
        return usage.Interval(
            {'u': 'web'},
            [
                messages.UsageSample(
                    'u',
                    1.0,
                    500_000,
                    250_000,
                    5_000,
                    direct_us=50_000,
                    direct_wait_us=500,
                    shared_us=10_000,
                    wakeups=100,
                    net_rx_packets=50,
                    net_tx_packets=25,
                    disk_read_requests=5,
                    executions=(400, 80, 400, 20, 100, 0, 0),
                )
            ],
            {
                'u': {
                    Role.VCPU: 250_000,
                    Role.EMULATOR: 30_000,
                    Role.IOTHREAD: 20_000,
                    Role.KVM: 1_000,
                }
            },
            messages.HostUsage(
                1.0,
                500_000,
                2,
                400_000,
                100_000,
                3_000,
                250_000,
                50_000,
                10_000,
                190_000,
            ),
            irq_time,
        )

    def test_as_text(self):
        lines = usage.table(self.interval()).splitlines()
        self.assertEqual(
            [
                'web',
                '0.500',
                '0.060',
                '0.040',
                '0.000',
                '0.000',
                '0.002',
                '0.000',
                '0.020',
                '0.011',
                '200',
                '100',
                '50',
                '10',
                '0',
            ],
            lines[1].split(),
        )
        self.assertEqual(
            ['all', '2.000', 'of', '2', 'CPUs'], lines[-2].split()
        )
        self.assertIn('does not account', lines[-1])
        self.assertIn(
            '0.006', usage.table(self.interval(True)).splitlines()[-1]
        )

    def test_executions_as_text(self):
        lines = usage.executions_table(self.interval()).splitlines()
        self.assertEqual(
            [
                ['instance', 'threads', 'times/s', 'io/time', 'us/time'],
                ['web', 'vcpu', '800', '0.20', '12.5'],
                ['host', '200', '0.80', '5.0'],
                ['emulator', '160', '-', '5.0'],
                ['iothread', '40', '-', '5.0'],
            ],
            [line.split() for line in lines],
        )

    def run_command(self, *words, driver=None):
        parser = argparse.ArgumentParser()
        usage.add_commands(parser.add_subparsers())
        conf = mock.Mock(command=parser.parse_args(['usage', *words]))

        @contextlib.contextmanager
        def once(_conf):
            yield driver or self.hypervisor

        with (
            mock.patch('vsched_agent.hypervisor.factory.once', once),
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            code = conf.command.handler(conf)
        return code, out.getvalue(), err.getvalue()

    def test_as_json(self):
        code, out, _ = self.run_command(
            '--json', '--seconds', '0.1', '--count', '2'
        )
        self.assertEqual(0, code)
        first, _ = map(json.loads, out.splitlines())
        self.assertEqual(self.one.name, first['instances'][0]['name'])
        self.assertIn('own_us', first['host'])
        self.assertIn('emulator', first['instances'][0]['roles_us'])
        self.assertLessEqual(0, first['instances'][0]['executions_per_s'])

    def test_executions(self):
        code, out, _ = self.run_command('--executions', '--seconds', '0.1')
        self.assertEqual(0, code)
        header, vcpu, host, *_ = out.splitlines()
        self.assertIn('times/s', header)
        self.assertIn(self.one.name[:32], vcpu)
        self.assertEqual('host', host.split()[0])

    def test_what_makes_no_sense(self):
        for words in (('--seconds', '0'), ('--count', '-1')):
            code, _, err = self.run_command(*words)
            self.assertEqual(2, code)
            self.assertIn('accepted are', err)

    def test_nobody_to_ask(self):
        driver = mock.Mock(kind='qemu')
        driver.domains.side_effect = hypervisor.HypervisorUnavailable('away')
        code, _, err = self.run_command(driver=driver)
        self.assertEqual(1, code)
        self.assertIn('does not answer: away', err)
