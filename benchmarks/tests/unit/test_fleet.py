# SPDX-License-Identifier: Apache-2.0

"""The figures of the fleet."""

import dataclasses
import json
import os
import pathlib
import sys
from unittest import mock

import fixtures
from oslotest import base

from benchmarks import fleet
from benchmarks import fleet_agents
from benchmarks import fleet_bus
from benchmarks import fleet_meter
from benchmarks import fleet_simulation
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys

MIB = 1 << 20


class FiguresTestCase(base.BaseTestCase):
    def test_quantiles(self):
        values = [float(number) for number in range(1, 101)]
        self.assertEqual(
            {'p50': 50, 'p95': 95, 'p99': 99, 'max': 100},
            fleet_simulation.quantiles(values),
        )

    def test_latencies_after_the_start(self):
        found = fleet_simulation.Found(
            [(0.0, 9.0), (5.0, 3.0), (60.0, 2.0), (61.0, 1.0)], 0, 0, []
        )
        self.assertEqual([1.0, 2.0, 3.0, 9.0], found.latencies_ms())
        self.assertEqual([1.0, 2.0], found.latencies_ms(60.0))

    def test_by_minute(self):
        reports = [(0.0, 1.0), (59.9, 3.0), (60.0, 2.0), (185.0, 7.0)]
        self.assertEqual([3.0, 2.0, 7.0], fleet._by_minute(reports))

    def test_fifths(self):
        self.assertEqual(
            [1, 2, 3, 4, 9], fleet._fifths([1, 1, 2, 2, 3, 3, 4, 4, 9, 9])
        )


class AgentsTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.started = []
        self.useFixture(
            fixtures.MockPatchObject(
                fleet_simulation.subprocess, 'Popen', side_effect=self.start
            )
        )
        self.agents = fleet_simulation.Agents(
            'rabbit://', '5a', fleet_simulation.Size(6, 2, 10, 5.0, 60.0)
        )

    def start(self, command, **_):
        task = json.loads(command[-1])
        one = mock.Mock(pid=100 + len(self.started), task=task)
        one.poll.return_value = None
        one.communicate.return_value = (
            json.dumps(
                {
                    'reports': [[2.0 - task['first'], 7.5]],
                    'failed': 1,
                    'timeouts': 2,
                    'problems': [['late', 3]],
                }
            ),
            None,
        )
        self.started.append(one)
        return one

    def test_they_are_divided(self):
        with self.agents as agents:
            found = agents.wait()
            self.assertEqual((100, 101), agents.pids)
        self.assertEqual(
            [(0, 3), (3, 3)],
            [(one.task['first'], one.task['agents']) for one in self.started],
        )
        self.assertEqual([(-1.0, 7.5), (2.0, 7.5)], found.reports)
        self.assertEqual((2, 4), (found.failed, found.timeouts))
        self.assertEqual(['3 x late'] * 2, found.problems)

    def test_none_is_left_behind(self):
        def fail():
            with self.agents:
                raise KeyError('x')

        self.assertRaises(KeyError, fail)
        for one in self.started:
            one.kill.assert_called_once_with()


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


class BusTestCase(base.BaseTestCase):
    """Replies that are read while a request is sent."""

    def test_replies_that_are_answered_do_not_nest(self):
        connection = self.useFixture(
            fixtures.MockPatchObject(fleet_bus.amqp, 'Connection')
        ).mock.return_value
        channel = connection.channel.return_value
        taken = []

        def answer(message, **_):
            """What the client library does: it reads while it sends."""
            sent = json.loads(json.loads(message.body)['oslo.message'])
            channel.basic_consume.call_args.kwargs['callback'](
                mock.Mock(
                    body=json.dumps(
                        {
                            'oslo.message': json.dumps(
                                {
                                    '_msg_id': sent['_msg_id'],
                                    'result': len(taken),
                                    'failure': None,
                                }
                            )
                        }
                    )
                )
            )

        def take(call, result, failure):
            taken.append(result)
            if result < 2 * sys.getrecursionlimit():
                bus.call('report', {}, {})

        channel.basic_publish.side_effect = answer
        bus = fleet_bus.Bus('rabbit://guest:guest@127.0.0.1:1/', take)
        bus.call('report', {}, {})
        bus.drain(60)
        connection.drain_events.assert_not_called()
        self.assertEqual(list(range(2 * sys.getrecursionlimit() + 1)), taken)
        bus.drain(7)
        connection.drain_events.assert_called_once_with(timeout=7)


class AgentTestCase(base.BaseTestCase):
    """Reports of a simulated agent, and what answers them."""

    def setUp(self):
        super().setUp()
        self.task = fleet_agents.Task('', 0, 1, 2, 5.0, 1, '5a' * 32)
        self.agent = fleet_agents.Agent(self.task, 3)
        self.sent = []

    def send(self):
        arguments, context = self.agent.request()
        self.sent.append(arguments['report'])
        self.signature = context[signing.FIELD]

    def answer(self, **changes):
        """Answer what was sent last."""
        return self.agent.take(
            signing.sign_reply(
                signing_keys.derive(
                    bytes.fromhex(self.task.master), self.agent.host, 1
                ),
                signing.Envelope.from_dict(self.signature),
                'report',
                collector_replies.ReportReply(
                    **{
                        'duplicate': False,
                        'overrides_generation': 0,
                        **changes,
                    }
                ).to_dict(),
            ),
            None,
        )

    def test_one_after_the_other(self):
        self.agent.plan(1.0)
        self.send()
        self.agent.plan(6.0)
        self.assertTrue(self.agent.waits)
        self.assertEqual(1.0, self.answer())
        self.assertFalse(self.agent.waits)
        self.send()
        self.assertEqual(6.0, self.answer())
        self.assertEqual([1, 2], [one['batch'] for one in self.sent])
        self.assertEqual(0, self.agent.unanswered)

    def test_a_usual_report_is_that_of_an_agent(self):
        for at in (1.0, 6.0):
            self.agent.plan(at)
            self.send()
            self.assertEqual(at, self.answer())
        first, second = map(messages.Report.from_dict, self.sent)
        self.assertEqual([2, 10, 5], self.sizes(first))
        # All but the host and its instances, with new times.
        self.assertEqual([0, 10, 5], self.sizes(second))
        self.assertEqual(second.to_dict(by_column=True), self.sent[1])
        for before, after in zip(first.usage, second.usage, strict=True):
            self.assertGreater(after.at, before.at)
            self.assertEqual(
                dataclasses.replace(before, at=0),
                dataclasses.replace(after, at=0),
            )
        self.assertEqual(
            [second.at - age_s for age_s in (4, 3, 2, 1, 0)],
            [one.at for one in second.host_usage],
        )
        self.assertEqual(
            {one.at for one in second.host_usage},
            {one.at for one in second.usage},
        )

    def sizes(self, report):
        return [
            len(some or ())
            for some in (report.instances, report.usage, report.host_usage)
        ]

    def test_what_waits_is_sent_again_first(self):
        self.agent.plan(1.0)
        self.send()
        self.agent.expire()
        self.agent.plan(6.0)
        self.send()
        # The first one was stored, and its answer was late.
        self.assertEqual(1.0, self.answer(duplicate=True))
        self.send()
        self.assertEqual(6.0, self.answer())
        self.assertEqual([1, 1, 2], [one['batch'] for one in self.sent])
        self.assertEqual(1, self.agent.timeouts)
        self.assertEqual(0, self.agent.problems.total())

    def test_the_first_one_is_sent_after_what_is_stored(self):
        self.agent.plan(1.0)
        self.send()
        self.assertIsNone(
            self.answer(
                epoch_state=collector_replies.EpochState.UNOPENED,
                last_batch=17,
            )
        )
        self.send()
        self.assertEqual(17, self.sent[1]['after'])
        self.assertEqual(1.0, self.answer())
        self.assertEqual(0, self.agent.problems.total())

    def test_a_repeat_that_was_not_tried_is_a_problem(self):
        self.agent.plan(1.0)
        self.send()
        self.assertIsNone(self.answer(duplicate=True))
        self.assertEqual(1, self.agent.unanswered)
        self.assertEqual(
            ['AssertionError: fleet-0003: batch 1 is a repeat'],
            list(self.agent.problems),
        )

    def test_failures_and_forged_answers_are_problems(self):
        self.agent.plan(1.0)
        self.send()
        self.assertIsNone(self.agent.take(None, 'no database'))
        self.send()
        self.assertIsNone(self.agent.take({'duplicate': False}, None))
        self.assertEqual(2, self.agent.problems.total())
        self.assertEqual(1, self.agent.unanswered)
