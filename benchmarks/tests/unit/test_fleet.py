# SPDX-License-Identifier: Apache-2.0

"""The figures of the fleet."""

import os
import pathlib
from unittest import mock

import fixtures
from oslotest import base

from benchmarks import fleet
from benchmarks import fleet_agents
from benchmarks import fleet_meter
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors

MIB = 1 << 20


class FiguresTestCase(base.BaseTestCase):
    def test_quantiles(self):
        values = [float(number) for number in range(1, 101)]
        self.assertEqual(
            {'p50': 50, 'p95': 95, 'p99': 99, 'max': 100},
            fleet._quantiles(values),
        )

    def test_by_minute(self):
        reports = [(0.0, 1.0), (59.9, 3.0), (60.0, 2.0), (185.0, 7.0)]
        self.assertEqual([3.0, 2.0, 7.0], fleet._by_minute(reports))

    def test_fifths(self):
        self.assertEqual(
            [1, 2, 3, 4, 9], fleet._fifths([1, 1, 2, 2, 3, 3, 4, 4, 9, 9])
        )


class WatchTestCase(base.BaseTestCase):
    def test_what_ended_it_is_raised(self):
        services = mock.create_autospec(
            fleet.deployment.Deployment, instance=True
        )
        services.pid.side_effect = ProcessLookupError('collector')
        watch = fleet._Watch(
            services, mock.create_autospec(fleet_meter.Meter, instance=True)
        )
        watch.start()
        watch.join(60)
        watch.end()
        self.assertRaises(ProcessLookupError, watch.stop)


class MeterTestCase(base.BaseTestCase):
    """Readings of this process, in a made-up pressure and database."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.MockPatchObject(fleet_meter, '_PRESSURE', self.folder)
        )
        self.written = {'log': 10 * MIB, 'checkpoint': 0}
        self.useFixture(
            fixtures.MockPatchObject(
                fleet_meter.Meter,
                '_read_written',
                lambda meter: dict(self.written),
            )
        )
        self.now_s = 100.0
        self.useFixture(
            fixtures.MockPatchObject(
                fleet_meter.time, 'monotonic', lambda: self.now_s
            )
        )
        self.wait('cpu', 5_000_000)

    def wait(self, name, total_us):
        (self.folder / name).write_text(
            'some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n'
            'full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n' % total_us
        )

    def test_readings(self):
        self.wait('io', 0)
        meter = fleet_meter.Meter({'self': (os.getpid(),)}, 'sqlite://')
        cpu_s = sum(os.times()[:2])
        while sum(os.times()[:2]) < cpu_s + 0.2:
            pass
        self.now_s += 10
        self.wait('cpu', 7_500_000)
        self.written = {'log': 14 * MIB, 'checkpoint': 3 * MIB}
        meter.read()
        (cpus,) = meter.minutes.pop('self_cpus')

        self.assertGreaterEqual(cpus, 0.018)
        self.assertEqual(
            {
                'cpu_pressure_pct': [25.0],
                'io_pressure_pct': [0.0],
                'log_mib': [4.0],
                'checkpoint_mib': [3.0],
            },
            meter.minutes,
        )

    def test_kernel_without_pressure(self):
        (self.folder / 'cpu').unlink()
        meter = fleet_meter.Meter({}, 'sqlite://')
        self.now_s += 60
        meter.read()
        self.assertEqual(
            {'log_mib': [0.0], 'checkpoint_mib': [0.0]}, meter.minutes
        )


class AgentTestCase(base.BaseTestCase):
    """Reports of a simulated agent, and what answers them."""

    def setUp(self):
        super().setUp()
        task = fleet_agents.Task('fake://', 0, 1, 2, 5.0, 1, '5a' * 32)
        self.agent = fleet_agents.Agent(task, 3, self.useFixture(_Transport()))
        self.answers = []
        self.taken = []
        self.agent._client = self

    def report(self, report):
        self.taken.append(report)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def answer(self, **changes):
        return collector_replies.ReportReply(
            **{'duplicate': False, 'overrides_generation': 0, **changes}
        )

    def test_what_waits_is_sent_again_first(self):
        self.answers = [
            errors.Unreachable('no answer'),
            self.answer(),
            self.answer(),
        ]
        self.assertEqual([], self.agent.report(1.0))
        self.assertEqual(1, self.agent.unanswered)
        self.assertEqual([1.0, 6.0], self.agent.report(6.0))
        self.assertEqual([1, 1, 2], [one.batch for one in self.taken])
        self.assertEqual(1, self.agent.timeouts)

    def test_a_repeat_that_was_not_tried_is_a_problem(self):
        self.answers = [self.answer(duplicate=True)]
        self.assertEqual([], self.agent.report(1.0))
        self.assertEqual(1, self.agent.unanswered)
        self.assertEqual(
            ['AssertionError: fleet-0003: batch 1 is a repeat'],
            list(self.agent.problems),
        )


class _Transport(fixtures.Fixture):
    """A bus in memory."""

    def _setUp(self):
        from oslo_config import cfg

        from vsched_lib.contract import rpc

        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        self._transport = rpc.get_transport(conf, 'fake://')
        self.addCleanup(self._transport.cleanup)

    def __getattr__(self, name):
        return getattr(self._transport, name)
