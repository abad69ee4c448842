# SPDX-License-Identifier: Apache-2.0

import dataclasses
import uuid

from oslotest import base
import prometheus_client
from prometheus_client import parser

from vsched_agent.metrics import recorder
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.metrics import agent as families
from vsched_lib.metrics import family

ONE, OTHER = (str(uuid.UUID(int=number)) for number in (1, 2))
INFO = messages.HostInfo(
    'agent', 'kernel', 'boot', 'qemu', 4, 4000, 3600, 600, 0, leaked_mcpu=50
)


def sample(instance_uuid=ONE, **changes):
    return dataclasses.replace(
        messages.UsageSample(
            instance_uuid,
            1.0,
            1_000_000,
            guest_us=600_000,
            wait_us=10_000,
            promised_us=500_000,
            direct_us=40_000,
            shared_us=2_000,
        ),
        **changes,
    )


class RecorderTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now = 100.0
        self.waiting = 1
        self.number = 0

    def recorder(self, **options):
        return recorder.Recorder(
            lambda: self.waiting, now=lambda: self.now, **options
        )

    def report(self, made, **parts):
        self.number += 1
        made.reported(
            messages.Report('node1', self.number, self.now, **parts), INFO
        )

    def read(self, made):
        text = prometheus_client.generate_latest(made.exposed()).decode()
        return {
            (one.name, *one.labels.values()): one.value
            for each in parser.text_string_to_metric_families(text)
            for one in each.samples
        }

    def test_everything_is_there_before_the_first_report(self):
        found = self.read(self.recorder())
        for one in families.ALL:
            if one in families.INSTANCES:
                continue
            names = {name for name, *_ in found}
            self.assertTrue({one.name, one.name + '_count'} & names, one.name)
        for state in ('applied', 'refused', 'pending', 'degraded'):
            self.assertEqual(0, found['vsched_agent_reservations', state])
        for step in recorder.STEPS:
            self.assertEqual(
                0, found['vsched_agent_step_failures_total', step]
            )
        self.assertEqual(
            0,
            found[
                'vsched_agent_events_total', errors.Code.DRIFT_REPAIRED.value
            ],
        )
        self.assertEqual(
            100, found['vsched_agent_last_pass_timestamp_seconds',]
        )

    def test_types(self):
        made = self.recorder()
        self.report(made, usage=(sample(),))
        kinds = {
            metric.name: metric.type for metric in made.exposed().collect()
        }
        for one in families.ALL:
            kind = 'gauge' if one.kind is family.Kind.INFO else one.kind
            self.assertEqual(
                kind, kinds[one.name.removesuffix('_total')], one.name
            )

    def test_passes_and_failures(self):
        made = self.recorder()
        self.now = 107.0
        made.passed(0.004)
        made.failed('attest')
        made.failed(ONE)
        found = self.read(made)
        self.assertEqual(1, found['vsched_agent_pass_duration_seconds_count',])
        self.assertEqual(
            107, found['vsched_agent_last_pass_timestamp_seconds',]
        )
        for step, count in (('attest', 1), ('pass', 1), ('plan', 0)):
            self.assertEqual(
                count, found['vsched_agent_step_failures_total', step]
            )

    def test_what_a_report_says(self):
        made = self.recorder()
        event = messages.Event(
            str(uuid.uuid4()),
            1.0,
            errors.Code.DRIFT_REPAIRED,
            messages.Severity.WARNING,
            'x',
        )
        self.report(
            made,
            usage=(sample(), sample(), sample(OTHER, promised_us=None)),
            host_usage=(
                messages.HostUsage(
                    1.0, 1_000_000, 4, 9, 8, 7, 600_000, 5, 4, 3
                ),
            ),
            events=(event, dataclasses.replace(event, code='vsched.unknown')),
        )
        found = self.read(made)
        for wanted, *key in (
            (1.0, 'instance_reserved_seconds_total', ONE),
            (0.0, 'instance_reserved_seconds_total', OTHER),
            (1.2, 'instance_guest_seconds_total', ONE),
            (0.02, 'instance_wait_seconds_total', ONE),
            (0.08, 'instance_charged_seconds_total', ONE, 'direct'),
            (0.004, 'instance_charged_seconds_total', ONE, 'shared'),
            (0.6, 'cpu_seconds_total', 'guest'),
            (9e-6, 'cpu_seconds_total', 'idle'),
            (1, 'events_total', 'vsched.drift.repaired'),
            (1, 'events_total', 'other'),
            (1, 'reports_total'),
            (4, 'cores'),
            (3.6, 'capacity_cores'),
            (0.6, 'admitted_cores'),
            (0.05, 'leaked_cores'),
        ):
            name, *labels = key
            self.assertAlmostEqual(
                wanted, found['vsched_agent_' + name, *labels], msg=str(key)
            )

    def test_instances_that_are_gone_have_no_metrics(self):
        made = self.recorder()
        reported = messages.ReservationReport(
            ONE, messages.Source.METADATA, messages.State.APPLIED, 1, 1.0
        )
        self.report(
            made,
            usage=(sample(), sample(OTHER)),
            reservations=(reported,),
            instances=(
                messages.InstanceInfo(ONE, 'a', 1),
                messages.InstanceInfo(OTHER, 'b', 1),
            ),
        )
        self.assertEqual(
            1, self.read(made)['vsched_agent_reservations', 'applied']
        )
        # A report without a list has the same instances.
        self.report(made)
        self.assertIn(
            ('vsched_agent_instance_guest_seconds_total', ONE), self.read(made)
        )
        # That which lists it no more has its last samples, and may be
        # followed by what a failed one has left.
        for report in (
            {
                'usage': (sample(), sample(OTHER)),
                'reservations': (reported,),
                'instances': (messages.InstanceInfo(OTHER, 'b', 1),),
            },
            {'usage': (sample(),)},
        ):
            self.report(made, **report)
            found = self.read(made)
            self.assertEqual(0, found['vsched_agent_reservations', 'applied'])
            self.assertEqual([], [key for key in found if ONE in key])
        self.assertIn(
            ('vsched_agent_instance_guest_seconds_total', OTHER), found
        )

    def test_names_of_instances(self):
        def infos():
            return {
                tuple(
                    one.labels[name] for name in families.INSTANCE_INFO.labels
                )
                for each in made.exposed().collect()
                for one in each.samples
                if one.name == families.INSTANCE_INFO.name
            }

        made = self.recorder()
        self.report(made, usage=(sample(),))
        self.assertEqual(set(), infos())
        one = messages.InstanceInfo(
            ONE, 'instance-1', 1, None, 'web "1"\n', 'p1', 'm1.small'
        )
        plain = messages.InstanceInfo(OTHER, 'vm', 1)
        expected = {
            (ONE, 'instance-1', 'web "1"\n', 'p1', 'm1.small'),
            (OTHER, 'vm', '', '', ''),
        }
        self.report(made, instances=(one, plain))
        self.assertEqual(expected, infos())
        self.report(made)
        self.assertEqual(expected, infos())
        # A server may be renamed and resized. There is one series of each.
        self.report(
            made,
            instances=(
                dataclasses.replace(one, server_name='db', flavor_name='big'),
            ),
        )
        self.assertEqual({(ONE, 'instance-1', 'db', 'p1', 'big')}, infos())
        self.report(made, instances=())
        self.assertEqual(set(), infos())

    def test_without_instances(self):
        made = self.recorder(per_instance=False)
        self.report(
            made,
            usage=(sample(),),
            instances=(messages.InstanceInfo(ONE, 'a', 1),),
        )
        self.assertEqual(
            [], [key for key in self.read(made) if 'instance' in key[0]]
        )

    def outbox(self, made):
        found = self.read(made)
        return (
            found['vsched_agent_outbox_reports',],
            found['vsched_agent_outbox_age_seconds',],
        )

    def test_the_outbox(self):
        made = self.recorder()
        self.assertEqual((0, 0), self.outbox(made))
        for waiting in (1, 1, 2, 3):
            self.now += 5
            self.waiting = waiting
            self.report(made)
        # Those of 110 and 115 wait; the one of 120 is new.
        self.assertEqual((2, 10), self.outbox(made))
        self.now += 60
        self.assertEqual((2, 70), self.outbox(made))
        self.waiting = 1
        self.report(made)
        self.assertEqual((0, 0), self.outbox(made))

    def test_reports_that_an_earlier_agent_has_left(self):
        made = self.recorder()
        self.now += 5
        self.waiting = 8
        self.report(made)
        self.assertEqual((7, 5), self.outbox(made))
