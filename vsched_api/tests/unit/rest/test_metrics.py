# SPDX-License-Identifier: Apache-2.0

"""``/metrics``: what it has, and what it must not have."""

import pathlib
import re

from prometheus_client import parser
import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.metric_families import api
from vsched_api.metric_families import fleet
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.metrics import family

_RULES = pathlib.Path(__file__).parents[4] / 'etc/vsched/prometheus/rules.yaml'


class TestMetrics(base.TestCase):
    """What a scrape returns."""

    def setUp(self):
        super().setUp()
        self.now = base.NOW + 5

    def fill(self, *instances, host=base.HOST, seconds=60, **parts):
        agent = self.agent(host)
        moments = [base.NOW - second for second in reversed(range(seconds))]
        agent.first(
            *instances,
            usage=tuple(
                base.sample(one, at) for one in instances for at in moments
            ),
            host_usage=tuple(base.host_usage(at) for at in moments),
            **parts,
        )
        rollups.fold(self.database, 5_000)
        return agent

    def samples(self, text):
        """Return values by name and labels."""
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for metric in parser.text_string_to_metric_families(text)
            for sample in metric.samples
        }

    def scrape(self, client=None):
        answer = (client or self.client()).get('/metrics')
        self.assertEqual(200, answer.status_code, answer.text)
        return self.samples(answer.text)

    def value(self, found, name, **labels):
        return found[(name, *sorted(labels.items()))]

    def test_units(self):
        (one,) = base.uuids(1)
        self.fill(one)
        found = self.scrape()
        for name, expected in (
            ('vsched_host_up', 1.0),
            ('vsched_host_batches_total', 1.0),
            ('vsched_host_cores', 2.0),
            ('vsched_host_capacity_cores', 1.8),
            ('vsched_host_reserved_cores', 0.6),
            ('vsched_host_leaked_cores', 0.0),
            ('vsched_host_last_report_timestamp_seconds', self.now),
            ('vsched_host_report_delay_seconds', 5.0),
            ('vsched_host_usage_timestamp_seconds', base.NOW),
            ('vsched_host_unfolded_batches', 0.0),
            ('vsched_host_certified', 0.0),
        ):
            self.assertEqual(
                expected, self.value(found, name, host=base.HOST), name
            )
        for name, expected in (
            ('vsched_instance_reserved_cores', 0.6),
            ('vsched_instance_used_cores', 0.6),
            ('vsched_instance_allocation_error_ratio', 0.0),
            ('vsched_instance_run_delay_ratio', 0.0),
            ('vsched_instance_charged_host_cores', 0.0),
        ):
            self.assertEqual(
                expected,
                self.value(found, name, host=base.HOST, instance_uuid=one),
                name,
            )
        self.assertEqual(
            0.1,
            self.value(
                found, 'vsched_host_cpu_cores', host=base.HOST, use='steal'
            ),
        )
        self.assertEqual(
            1.0,
            self.value(
                found,
                'vsched_host_info',
                host=base.HOST,
                agent_version='0.1.0',
                kernel='6.1.0',
                hypervisor='qemu',
            ),
        )

    def test_the_uses_of_cpus_add_up(self):
        self.fill()
        found = self.scrape()
        self.assertAlmostEqual(
            2.0,
            sum(
                value
                for key, value in found.items()
                if key[0] == 'vsched_host_cpu_cores'
            ),
        )

    def test_every_family_is_exposed_and_no_other(self):
        agent = self.fill(*base.uuids(1), events=(base.event(self.now),))
        agent.at = self.now
        base.deliver(
            self.collector(),
            messages.Report(base.HOST, 99, self.now, sent_at=self.now),
        )
        self.database.write(
            lambda session: session.add(
                models.HostVerification(
                    host_id=session.execute(
                        sa.select(models.Host.id)
                    ).scalar_one(),
                    checked_at=self.now,
                    contradictions=[],
                )
            )
        )
        client = self.client()
        client.get('/metrics').close()
        text = client.get('/metrics').text
        kinds = dict(
            line.split()[2:4]
            for line in text.splitlines()
            if line.startswith('# TYPE')
        )
        self.assertEqual(
            {
                one.name: (
                    'gauge' if one.kind is family.Kind.INFO else one.kind
                )
                for one in (*fleet.FLEET, *fleet.INSTANCES, *api.ALL)
            },
            kinds,
        )
        # None of them without a series.
        names = {key[0] for key in self.samples(text)}
        for name, kind in kinds.items():
            self.assertIn(
                name + '_count' if kind == 'histogram' else name, names
            )

    def test_states_at_zero_are_there(self):
        self.fill()
        found = self.scrape()
        for state in messages.State:
            self.assertEqual(
                0.0,
                self.value(
                    found, 'vsched_reservations', host=base.HOST, state=state
                ),
            )
        for kind in messages.JobKind:
            for state in messages.JobState:
                self.assertEqual(
                    0.0,
                    self.value(found, 'vsched_jobs', kind=kind, state=state),
                )
        self.assertEqual(
            0.0,
            self.value(
                found,
                'vsched_events_last_hour',
                code=errors.Code.BANDWIDTH_LEAKED,
            ),
        )

    def test_what_alert_rules_select_is_there(self):
        self.fill()
        found = self.scrape()
        for code in fleet.ALERT_CODES:
            self.assertEqual(
                0.0,
                self.value(
                    found,
                    'vsched_host_events_last_hour',
                    host=base.HOST,
                    code=code,
                ),
            )
        with open(_RULES, encoding='utf-8') as file:
            selected = re.findall(
                r'events_last_hour{code="([^"]+)"}', file.read()
            )
        self.assertEqual(set(fleet.ALERT_CODES), set(selected))

    def test_what_nova_calls_an_instance(self):
        one, two = base.uuids(2)
        agent = self.fill(one, two)
        name = 'web"} 1 \\ vsched_host_up{host="forged"} 1'
        agent.send(
            listed=False,
            instances=(
                messages.InstanceInfo(
                    one,
                    'vm',
                    1,
                    server_name=name,
                    project_id='p1',
                    flavor_name='m1.small',
                ),
                messages.InstanceInfo(two, 'vm', 1),
            ),
        )
        found = self.scrape()
        (shown,) = [
            dict(key[1:])
            for key in found
            if key[0] == 'vsched_instance_info'
            and dict(key[1:])['instance_uuid'] == one
        ]
        self.assertEqual(
            ('p1', 'm1.small'), (shown['project_id'], shown['flavor_name'])
        )
        self.assertEqual(name, shown['server_name'])
        self.assertEqual(
            1.0,
            self.value(
                found,
                'vsched_instance_info',
                host=base.HOST,
                instance_uuid=two,
                server_name='',
                project_id='',
                flavor_name='',
            ),
        )
        self.assertEqual(
            1, len([key for key in found if key[0] == 'vsched_host_up'])
        )

    def test_without_hosts(self):
        found = self.scrape()
        self.assertEqual(0.0, self.value(found, 'vsched_snapshot_hosts'))
        self.assertNotIn(
            ('vsched_snapshot_last_change_timestamp_seconds',), found
        )

    def test_instances_can_be_switched_off(self):
        self.fill(*base.uuids(2))
        self.conf.set_override('per_instance', False, 'metrics')
        found = self.scrape()
        self.assertEqual(
            [], [key for key in found if key[0].startswith('vsched_instance_')]
        )
        self.assertEqual(
            0.0, self.value(found, 'vsched_metrics_instances_omitted')
        )

    def test_the_bound_says_what_it_cut(self):
        self.fill(*base.uuids(3))
        self.conf.set_override('max_instances', 2, 'metrics')
        found = self.scrape()
        self.assertEqual(
            2,
            len(
                [
                    key
                    for key in found
                    if key[0] == 'vsched_instance_used_cores'
                ]
            ),
        )
        self.assertEqual(
            1.0, self.value(found, 'vsched_metrics_instances_omitted')
        )

    def test_an_instance_without_a_reservation(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.send(
            one,
            host_info=base.host_info(),
            usage=tuple(
                base.sample(one, base.NOW - second, promised_us=None)
                for second in range(60)
            ),
        )
        rollups.fold(self.database, 5_000)
        self.assertEqual(
            {
                'vsched_instance_info',
                'vsched_instance_used_cores',
                'vsched_instance_run_delay_ratio',
                'vsched_instance_charged_host_cores',
            },
            {
                key[0]
                for key in self.scrape()
                if key[0].startswith('vsched_instance_')
            },
        )

    def test_words_of_another_release_make_no_series_of_their_own(self):
        self.fill(events=(base.event(self.now, code='vsched.new.one'),))
        self.database.write(
            lambda session: session.add(
                models.Job(
                    uuid='x',
                    host_id=session.execute(
                        sa.select(models.Host.id)
                    ).scalar_one(),
                    kind='new',
                    wanted='run',
                    state='new',
                    attempt=1,
                    parameters={},
                    progress_ppm=0,
                    detail='',
                    created_at=1.0,
                    updated_at=1.0,
                )
            )
        )
        text = self.client().get('/metrics').text
        for word in ('"new"', 'vsched.new'):
            self.assertNotIn(word, text)
        found = self.samples(text)
        self.assertEqual(
            1.0, self.value(found, 'vsched_events_last_hour', code='other')
        )
        self.assertEqual(
            1.0,
            self.value(
                found,
                'vsched_host_events_last_hour',
                host=base.HOST,
                code='other',
            ),
        )

    def test_what_hosts_say_cannot_break_the_format(self):
        self.agent().first()
        kernel = 'x"} 1\nvsched_host_up{host="forged"} 1\n\\'
        self.database.write(
            lambda session: session.execute(
                sa.update(models.Host).values(
                    info={**base.host_info().to_dict(), 'hypervisor': kernel}
                )
            )
        )
        found = self.scrape()
        self.assertEqual(
            1, len([key for key in found if key[0] == 'vsched_host_up'])
        )

    def test_unknown_parameters(self):
        self.assertEqual(400, self.client().get('/metrics?name=x').status_code)
