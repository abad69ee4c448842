# SPDX-License-Identifier: Apache-2.0

"""Every command against a real API: output, exit codes, JSON."""

import csv
import io
import json
import os
import time
import typing as ty

import fixtures
from oslotest import base

from vsched_client.tests import entry_points
from vsched_client.tests import fake_nova
from vsched_client.tests.functional import api
from vsched_client.tests import scenario
from vsched_client.tests import shell
from vsched_client.v1 import balloons
from vsched_client.v1 import evaluations
from vsched_client.v1 import events
from vsched_client.v1 import flavors
from vsched_client.v1 import hosts
from vsched_client.v1 import jobs
from vsched_client.v1 import profiles
from vsched_client.v1 import reservations

#: Only a hang takes longer.
_PATIENCE_S = 60
HOST = 'node1'
UNKNOWN = '99999999-9999-4999-8999-999999999999'


class ApiTestCase(base.BaseTestCase):
    """Tests with an API of their own."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.url = self.useFixture(api.Api()).url

    def run_command(self, *words, code=0, compute=None):
        found = shell.run(*words, url=self.url, compute=compute)
        self.assertEqual(code, found.code, (words, found))
        return found

    def json(self, *words, code=0):
        return self.run_command(*words, '-f', 'json', code=code).json

    def assert_fields(self, kind, found):
        """Each field that the client names is in the answer."""
        self.assertEqual(
            set(), set(ty.get_type_hints(kind)) - set(found), found
        )


class TestEveryCommand(ApiTestCase):
    """What each of them does, noun by noun."""

    def test_host(self):
        found = self.json('cpu', 'host', 'list')
        self.assertEqual(
            ['node1', 'node2', 'node3'], [one['name'] for one in found]
        )
        self.assertEqual(
            (1800, 600, 1200),
            tuple(
                found[0][name]
                for name in ('capacity_mcpu', 'admitted_mcpu', 'free_mcpu')
            ),
        )
        self.assertEqual(['deadline', 'cfs'], found[0]['backends'])
        self.assertEqual('synced', found[0]['placement'])
        self.assertEqual('down', found[2]['state'])
        self.assertEqual(
            2, len(self.json('cpu', 'host', 'list', '--limit', '2'))
        )
        one = self.json('cpu', 'host', 'show', HOST)
        self.assert_fields(hosts.Host, one)
        self.assertNotIn('links', one)
        self.assertEqual(1200, one['free_mcpu'])
        text = self.run_command('cpu', 'host', 'show', HOST).out
        self.assertIn('1.8 CPU', text)
        self.assertIn('rtds: not a Xen host', text)

    def test_audit_without_placement(self):
        found = self.run_command('cpu', 'host', 'audit', HOST, code=1)
        self.assertIn('HTTP 501', found.err)

    def test_reservation_list_and_show(self):
        found = self.json('cpu', 'reservation', 'list')
        self.assertEqual(3, len(found))
        first = found[0]
        self.assertEqual(
            (api.RESERVED, 600_000, 20_000, 'deadline', 600),
            tuple(
                first[name]
                for name in (
                    'instance_uuid',
                    'share_ppm',
                    'period_us',
                    'enforced_backend',
                    'enforced_bandwidth_mcpu',
                )
            ),
        )
        refused = self.json('cpu', 'reservation', 'list', '--state', 'refused')
        self.assertEqual(
            [api.REFUSED], [one['instance_uuid'] for one in refused]
        )
        one = self.json('cpu', 'reservation', 'show', api.RESERVED)
        self.assert_fields(reservations.Reservation, one)
        text = self.run_command('cpu', 'reservation', 'show', api.RESERVED).out
        self.assertIn('60 %', text)
        self.assertIn('12 ms every 20 ms by deadline', text)

    def test_reservation_create_set_unset(self):
        one = self.json(
            *('cpu', 'reservation', 'create', api.PLAIN),
            *('--share', '25%', '--period', '10ms', '--wait'),
        )
        self.assertEqual(
            ('applied', 2500, 10_000),
            (one['state'], one['runtime_us'], one['period_us']),
        )
        generation = one['generation']
        # Without a period the share is one of that which is there.
        one = self.json(
            *('cpu', 'reservation', 'set', api.PLAIN),
            *('--share', '600m', '--mode', 'work_conserving', '--wait'),
        )
        self.assertEqual(
            ('applied', 6000, 'work_conserving'),
            (one['state'], one['runtime_us'], one['mode']),
        )
        found = self.run_command(
            *('cpu', 'reservation', 'set', api.PLAIN),
            *('--runtime', '500us', '--generation', str(generation)),
            code=5,
        )
        self.assertIn('generation', found.err)
        self.json('cpu', 'reservation', 'unset', api.PLAIN, '--wait')
        found = self.run_command(
            'cpu', 'reservation', 'unset', api.PLAIN, code=1
        )
        self.assertIn('HTTP 404', found.err)

    def test_reservation_refused_by_the_host(self):
        found = self.run_command(
            *('cpu', 'reservation', 'set', api.RESERVED),
            *('--share', '100%', '--wait', '-f', 'json'),
            code=3,
        )
        self.assertEqual('refused', found.json['state'])
        self.assertIn('2000 mcpu needed exceed 1800 mcpu', found.err)
        # What no host can do is refused at once.
        found = self.run_command(
            *('cpu', 'reservation', 'set', api.RESERVED),
            *('--backend', 'cfs', '--mode', 'work_conserving'),
            code=1,
        )
        self.assertIn('vsched.reservation.invalid', found.err)

    def test_reservation_without_an_answer(self):
        found = self.run_command(
            *('cpu', 'reservation', 'set', api.RESERVED),
            *('--runtime', '%dus' % api.SILENT_US),
            *('--wait', '--timeout', '100ms'),
            code=4,
        )
        self.assertIn('the agent has not answered', found.err)
        self.assertEqual(
            'pending',
            self.json('cpu', 'reservation', 'show', api.RESERVED)['state'],
        )

    def test_usage(self):
        found = self.json('cpu', 'usage', 'show', api.RESERVED)
        self.assertEqual(4, len(found))
        self.assertEqual(
            sorted(one['at'] for one in found), [one['at'] for one in found]
        )
        self.assertEqual(
            (600, 612, 20_000),
            tuple(
                found[1][name]
                for name in ('promised_mcpu', 'guest_mcpu', 'error_ppm')
            ),
        )
        found = self.json(
            *('cpu', 'usage', 'show', '--of', 'hosts', '--host', HOST)
        )
        self.assertEqual(3, len(found))
        self.assertEqual(1000, found[0]['idle_mcpu'])
        found = self.json(
            *('cpu', 'usage', 'show', '--resolution', 'minute'),
            *('--host', HOST),
        )
        self.assertNotEqual([], found)
        found = self.json('cpu', 'usage', 'top')
        self.assertEqual(
            [(api.PLAIN, 900), (api.RESERVED, 600)],
            [(one['instance_uuid'], one['guest_mcpu']) for one in found],
        )
        found = self.json('cpu', 'usage', 'top', '--by', 'error')
        self.assertEqual(api.RESERVED, found[0]['instance_uuid'])

    def test_profile(self):
        found = self.json('cpu', 'profile', 'list', HOST)
        self.assertEqual(
            {
                ('error', 'benchmark'),
                ('error', 'live'),
                ('overhead', 'benchmark'),
            },
            {(one['kind'], one['source']) for one in found},
        )
        found = self.json(
            *('cpu', 'profile', 'show', HOST, '--source', 'benchmark')
        )
        self.assertEqual({2}, {one['version'] for one in found})
        self.assertIn('share_ppm', found[0])
        found = self.json(
            *('cpu', 'profile', 'show', HOST, '--kind', 'overhead')
        )
        self.assertIn(
            ('net_rx', 12_000.0),
            [(one['term'], one['cost_ns']) for one in found],
        )
        job = self.json(
            *('cpu', 'profile', 'create', HOST, '--quick', '--wait'),
            *('--share', '10%', '--share', '0.5', '--period', '10ms'),
        )
        self.assertEqual('done', job['state'])
        self.assertEqual([10.0, 50.0], job['parameters']['shares_pct'])
        found = self.run_command(
            *('cpu', 'profile', 'create', HOST, '--kind', 'overhead'),
            *('--seconds', '5'),
            code=2,
        )
        self.assertIn('overhead', found.err)

    def test_profile_export(self):
        text = self.run_command('cpu', 'profile', 'export', HOST).out
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertNotEqual([], rows)
        folder = self.useFixture(fixtures.TempDir()).path
        path = os.path.join(folder, 'profile.json')
        self.run_command(
            *('cpu', 'profile', 'export', HOST, '--wait'),
            *('-f', 'json', '-o', path),
        )
        with open(path, encoding='utf-8') as file:
            (profile,) = json.load(file)
        self.assert_fields(profiles.ErrorProfile, profile)
        self.assertEqual(len(rows), len(profile['points']))
        found = self.run_command(
            *('cpu', 'profile', 'export', HOST, '--profile-version', '99'),
            code=1,
        )
        self.assertIn('vsched.profile.not_found', found.err)

    def test_job(self):
        job = self.json('cpu', 'profile', 'create', HOST)
        uuid = job['uuid']
        self.assert_fields(jobs.Job, job)
        # The agent begins in a thread of its own.
        give_up = time.monotonic() + _PATIENCE_S
        while self.json('cpu', 'job', 'show', uuid)['state'] != 'running':
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.05)
        found = self.run_command(
            'cpu', 'job', 'show', uuid, '--wait', '--timeout', '50ms', code=4
        )
        self.assertIn('3 of 12 points', found.err)
        self.assertEqual(
            [uuid], [one['uuid'] for one in self.json('cpu', 'job', 'list')]
        )
        found = self.json('cpu', 'job', 'cancel', uuid, '--wait')
        self.assertEqual('cancelled', found['state'])
        found = self.run_command('cpu', 'job', 'cancel', uuid, code=1)
        self.assertIn('vsched.job.finished', found.err)
        found = self.json('cpu', 'job', 'resume', uuid)
        self.assertEqual(2, found['attempt'])

    def test_balloon(self):
        found = self.json('cpu', 'balloon', 'list')
        self.assertEqual(2, len(found))
        one = self.json('cpu', 'balloon', 'show', api.PLAIN)
        self.assert_fields(balloons.Balloon, one)
        one = self.json(
            *('cpu', 'balloon', 'set', api.PLAIN, '--vcpus', '1', '--wait')
        )
        self.assertEqual(
            ('applied', 1), (one['order']['state'], one['online_vcpus'])
        )
        generation = one['order']['generation']
        found = self.run_command(
            *('cpu', 'balloon', 'set', api.PLAIN, '--vcpus', '2'),
            *('--generation', str(generation - 1)),
            code=5,
        )
        one = self.json(
            *('cpu', 'balloon', 'freeze', api.PLAIN, '--wait'),
            *('--generation', str(generation)),
        )
        self.assertTrue(one['order']['frozen'])
        one = self.json('cpu', 'balloon', 'freeze', api.PLAIN, '--off')
        self.assertFalse(one['order']['frozen'])
        one = self.json('cpu', 'balloon', 'unset', api.PLAIN, '--wait')
        self.assertIsNone(one['order'])
        found = self.run_command(
            'cpu', 'balloon', 'set', api.PLAIN, '--vcpus', '9', code=3
        )
        self.assertIn('vsched.balloon.out_of_bounds', found.err)
        found = self.json('cpu', 'balloon', 'history')
        self.assert_fields(balloons.Change, found[0])
        self.assertEqual(
            ['reverted'],
            [
                one['outcome']
                for one in self.json(
                    *('cpu', 'balloon', 'history'),
                    *('--instance', api.PLAIN, '--outcome', 'reverted'),
                )
            ],
        )

    def test_event(self):
        found = self.json('cpu', 'event', 'list')
        self.assertEqual(3, len(found))
        self.assert_fields(events.Event, found[0])
        self.assertEqual('vsched.drift.repaired', found[0]['code'])
        found = self.run_command(
            *('cpu', 'event', 'list', '--follow', '--interval', '10ms'),
            *('--timeout', '50ms', '-f', 'json'),
        )
        lines = [json.loads(line) for line in found.out.splitlines()]
        self.assertEqual(3, len(lines))
        self.assertEqual('vsched.drift.repaired', lines[-1]['code'])

    def test_evaluation(self):
        words = ('cpu', 'evaluation', 'create')
        found = self.run_command(
            *words, '--share', '60%', '--vcpus', '2', '-f', 'json'
        )
        self.assertIn('1 of 1 placed', found.err)
        self.assert_fields(evaluations.Verdict, found.json[0])
        self.assertEqual(1200, found.json[0]['demand_mcpu'])
        found = self.run_command(
            *words, '--demand', '1.5', '--instances', '99', code=3
        )
        self.assertIn('of 99 placed', found.err)
        self.run_command(*words, '--demand', '1', '--vcpus', '2', code=2)
        self.run_command(*words, code=2)

    def test_flavor(self):
        compute = fake_nova.FakeNova(small={}, plain={'hw:x': 'y'})
        found = self.run_command(
            *('cpu', 'flavor', 'set', 'small', '--runtime', '6ms'),
            *('--backend', 'deadline', '--max-alloc-error-pct', '0.3'),
            *('-f', 'json'),
            compute=compute,
        ).json
        self.assert_fields(flavors.Claim, found)
        self.assertEqual(
            {
                'vsched:cpu_runtime_us': '6000',
                'vsched:backend': 'deadline',
                'vsched:max_alloc_error_pct': '0.3',
                'resources_VSCHED:CUSTOM_VSCHED_MCPU': '600',
                'trait_VSCHED:CUSTOM_VSCHED_BACKEND_DEADLINE': 'required',
                'group_policy': 'none',
            },
            compute.specs['small'],
        )
        found = self.run_command(
            'cpu', 'flavor', 'show', 'small', compute=compute
        )
        self.assertIn('only the filters check it', found.out)
        before = dict(compute.specs['small'])
        for words, text in (
            (('--runtime', '30ms'), 'more than the period'),
            (('--backend', 'magic'), 'accepted: one of'),
            (('--mode', 'fast'), 'accepted: one of'),
            (('--property', 'colour=red'), 'is not known'),
        ):
            found = self.run_command(
                *('cpu', 'flavor', 'set', 'small', *words),
                code=1,
                compute=compute,
            )
            self.assertIn(text, found.err)
        self.assertEqual(before, compute.specs['small'])
        self.run_command(
            'cpu', 'flavor', 'set', 'small', '--no-property', compute=compute
        )
        self.assertEqual({}, compute.specs['small'])

    def test_formats(self):
        """Each format of each kind of command."""
        for form in ('table', 'json', 'yaml', 'csv', 'value'):
            found = self.run_command('cpu', 'host', 'list', '-f', form)
            self.assertIn('node1', found.out)
        for form in ('table', 'json', 'yaml', 'csv', 'shell', 'value'):
            found = self.run_command('cpu', 'host', 'show', HOST, '-f', form)
            self.assertIn('node1', found.out)
        for form in ('table', 'json', 'yaml', 'csv'):
            found = self.run_command(
                'cpu', 'profile', 'export', HOST, '-f', form
            )
            self.assertIn('deadline', found.out)
        rows = list(
            csv.DictReader(
                io.StringIO(
                    self.run_command('cpu', 'host', 'list', '-f', 'csv').out
                ),
                quoting=csv.QUOTE_NONNUMERIC,
            )
        )
        self.assertEqual(1800, rows[0]['capacity_mcpu'])
        for name in ('capacity_mcpu', 'Capacity', 'capacity'):
            for form, text in (('value', '1800'), ('table', '1.8 CPU')):
                found = self.run_command(
                    *('cpu', 'host', 'list', '-c', name, '-f', form)
                )
                self.assertIn(text, found.out)
        found = self.run_command(
            *('cpu', 'host', 'list', '-f', 'value', '-c', 'name'),
            *('--sort-column', 'Host', '--sort-descending'),
        )
        self.assertEqual(['node3', 'node2', 'node1'], found.out.split())

    def test_errors(self):
        found = self.run_command('cpu', 'reservation', 'show', UNKNOWN, code=1)
        self.assertIn('HTTP 404', found.err)
        self.assertIn('req-', found.err)
        self.run_command('cpu', 'reservation', 'show', 'no-uuid', code=2)
        found = shell.run('cpu', 'host', 'list', url='http://127.0.0.1:1')
        self.assertEqual(1, found.code)

    def each_command(self, form):
        compute = fake_nova.FakeNova(
            **{scenario.FLAVOR: dict(scenario.FLAVOR_SPECS)}
        )
        answered = scenario.run(
            lambda words: shell.run(*words, url=self.url, compute=compute),
            api.RESERVED,
            api.PLAIN,
            placement=False,
            form=form,
        )
        self.assertEqual(sorted(entry_points.commands()), sorted(answered))

    def test_each_command_in_json(self):
        self.each_command('json')

    def test_each_command_in_yaml(self):
        self.each_command('yaml')

    def test_each_command_in_csv(self):
        self.each_command('csv')

    def test_each_command_in_a_table(self):
        self.each_command(scenario.TABLE)
