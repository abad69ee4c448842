# SPDX-License-Identifier: Apache-2.0

"""Output and exit codes of the commands, for answers made up here."""

import io
import json
import os
import types
from unittest import mock

import fixtures
from oslotest import base
from requests_mock.contrib import fixture

from vsched_client.osc import exit_codes
from vsched_client.tests import entry_points
from vsched_client.tests import shell
from vsched_client.tests.unit import api_case

URL = api_case.URL
UUID = '6f1c0e5a-2b7d-4c39-9a41-0d8e5f7b6c12'
ExitCode = exit_codes.ExitCode

failure = api_case.failure


def reservation(**changes):
    """Return a reservation of 60 %."""
    return {
        'instance_uuid': UUID,
        'instance_name': 'vm\x1b[31m',
        'host': 'node1',
        'present': True,
        'vcpus': 2,
        'source': 'override',
        'state': 'applied',
        'generation': 7,
        'runtime_us': 12_000,
        'period_us': 20_000,
        'mode': 'capped',
        'backend': None,
        'bandwidth_mcpu': 1200,
        'override': None,
        'enforced': {
            'backend': 'deadline',
            'runtime_us': 12_000,
            'period_us': 20_000,
            'bandwidth_mcpu': 1200,
        },
        'since': None,
        'attested_at': '2027-01-15T08:00:29.000000Z',
        'code': None,
        'detail': None,
        'figures': {},
        'links': [],
        **changes,
    }


def balloon(**order):
    """Return a balloon status with an order, or without one."""
    return {
        'instance_uuid': UUID,
        'instance_name': 'vm',
        'host': 'node1',
        'present': True,
        'state': 'manual',
        'vcpus': 4,
        'online_vcpus': 2,
        'cpus': [1, 2],
        'order': {
            'state': 'applied',
            'generation': 7,
            'target_vcpus': 2,
            'frozen': False,
            'code': None,
            'detail': None,
            **order,
        }
        if order
        else None,
    }


def job(**changes):
    """Return a job that has ended."""
    return {
        'uuid': UUID,
        'host': 'node1',
        'kind': 'profile-error',
        'wanted': 'run',
        'state': 'done',
        'attempt': 1,
        'parameters': {'quick': True},
        'progress_ppm': 1_000_000,
        'detail': '12 points',
        'created_at': '2027-01-15T08:00:00.000000Z',
        'updated_at': '2027-01-15T08:04:30.000000Z',
        **changes,
    }


class CommandTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.api = self.useFixture(fixture.Fixture())

    def answer(self, method, path, *answers, **more):
        if answers:
            more['response_list'] = [
                one if {'json', 'text'} & one.keys() else {'json': one}
                for one in answers
            ]
        return self.api.register_uri(method, URL + path, **more)

    def run_command(self, text, *words, code=ExitCode.DONE, **more):
        found = shell.run(*text.split(), *words, url=URL, **more)
        self.assertEqual(code, found.code, found)
        return found


class ReservationTestCase(CommandTestCase):
    path = '/v1/reservations/' + UUID
    words = 'cpu reservation set %s --runtime 12ms' % UUID

    def change(self, before, *after):
        self.answer('PATCH', self.path, {'reservation': before})
        self.answer('GET', self.path, *({'reservation': one} for one in after))

    def pending(self, **changes):
        return reservation(state='pending', **changes)

    def test_list(self):
        self.answer(
            'GET',
            '/v1/reservations',
            {'reservations': [reservation(), reservation(enforced=None)]},
        )
        found = self.run_command(
            'cpu reservation list --host node1 --state applied --state '
            'refused --source override --backend deadline'
        )
        self.assertIn(r'vm\x1b[31m', found.out)
        self.assertNotIn('\x1b', found.out)
        for text in ('60 %', '20 ms', '1.2 CPU', 'deadline'):
            self.assertIn(text, found.out)
        self.assertEqual(
            {
                'host': ['node1'],
                'state': ['applied', 'refused'],
                'source': ['override'],
                'backend': ['deadline'],
            },
            self.api.last_request.qs,
        )
        first, second = self.run_command('cpu reservation list -f json').json
        self.assertEqual('vm\x1b[31m', first['instance_name'])
        self.assertEqual(1200, first['enforced_bandwidth_mcpu'])
        self.assertIsNone(second['enforced_backend'])
        found = self.run_command(
            'cpu reservation list -f value -c instance_name -c runtime_us'
        )
        self.assertEqual('vm\\x1b[31m 12000\n' * 2, found.out)

    def test_show(self):
        self.answer('GET', self.path, {'reservation': reservation()})
        found = self.run_command('cpu reservation show ' + UUID)
        self.assertIn('12 ms every 20 ms by deadline', found.out)
        self.assertNotIn('\x1b', found.out)
        found = self.run_command('cpu reservation show -f shell ' + UUID)
        self.assertIn('runtime_us="12000"\n', found.out)
        self.assertNotIn('\x1b', found.out)
        found = self.run_command('cpu reservation show -f json ' + UUID)
        self.assertEqual(600_000, found.json['share_ppm'])

    def test_create(self):
        self.answer(
            'POST', '/v1/reservations', {'reservation': self.pending()}
        )
        self.run_command('cpu reservation create %s --share 60%%' % UUID)
        self.assertEqual(
            {'instance_uuid': UUID, 'runtime_us': 12_000, 'period_us': 20_000},
            self.api.last_request.json(),
        )
        self.run_command(
            'cpu reservation create %s --runtime 5ms --period 10ms --mode '
            'work_conserving --backend any --weight 7 --comm-aware no '
            '--io-charging charge --max-alloc-error-pct 2.5 --balloon auto '
            '--min-vcpus 2' % UUID
        )
        self.assertEqual(
            {
                'instance_uuid': UUID,
                'runtime_us': 5_000,
                'period_us': 10_000,
                'mode': 'work_conserving',
                'backend': None,
                'weight': 7,
                'comm_aware': False,
                'io_charging': 'charge',
                'max_alloc_error_pct': 2.5,
                'balloon': 'auto',
                'min_vcpus': 2,
            },
            self.api.last_request.json(),
        )

    def test_usage(self):
        for words in (
            'create %s' % UUID,
            'create %s --share 60%% --runtime 5ms' % UUID,
            'create %s --share 60' % UUID,
            'create %s --runtime 5' % UUID,
            'create name --share 60%',
            'set %s' % UUID,
            'set %s --share 0%%' % UUID,
            'set %s --comm-aware perhaps' % UUID,
            'set %s --runtime 5ms --generation -1' % UUID,
        ):
            self.run_command('cpu reservation ' + words, code=ExitCode.USAGE)
        self.assertEqual(0, self.api.call_count)
        found = self.run_command(
            'cpu reservation create %s --share 60' % UUID, code=ExitCode.USAGE
        )
        self.assertIn('accepted: up to 100%', found.err)

    def test_set_to_what_the_flavor_has(self):
        self.change(self.pending())
        self.run_command(
            'cpu reservation set %s --weight flavor --min-vcpus flavor '
            '--generation 3' % UUID
        )
        self.assertEqual(
            {'weight': None, 'min_vcpus': None, 'generation': 3},
            self.api.last_request.json(),
        )

    def test_a_share_is_of_the_period_that_is_there(self):
        self.change(
            self.pending(), reservation(period_us=10_000, generation=3)
        )
        self.run_command('cpu reservation set %s --share 25%%' % UUID)
        self.assertEqual(
            {'runtime_us': 2_500, 'generation': 3},
            self.api.last_request.json(),
        )
        self.run_command(
            'cpu reservation set %s --share 25%% --generation 2' % UUID
        )
        self.assertEqual(2, self.api.last_request.json()['generation'])
        self.run_command(
            'cpu reservation set %s --share 25%% --period 40ms' % UUID
        )
        self.assertEqual(
            {'runtime_us': 10_000, 'period_us': 40_000},
            self.api.last_request.json(),
        )
        self.change(self.pending(), reservation(period_us=None))
        found = self.run_command(
            'cpu reservation set %s --share 25%%' % UUID, code=ExitCode.USAGE
        )
        self.assertIn('give --period', found.err)

    def test_wait(self):
        self.change(self.pending(), self.pending(), reservation())
        with mock.patch('time.sleep', autospec=True):
            found = self.run_command(self.words + ' --wait -f json')
        self.assertEqual('applied', found.json['state'])
        self.assertEqual('', found.err)

    def test_wait_for_an_answer_that_is_there(self):
        self.change(reservation())
        self.run_command(self.words + ' --wait')

    def test_wait_and_it_is_not_held(self):
        for state in ('refused', 'degraded', 'released'):
            self.change(
                self.pending(),
                reservation(
                    state=state,
                    code='vsched.some.code',
                    detail='3800 mcpu \x1b exceed',
                ),
            )
            found = self.run_command(
                self.words + ' --wait -f json', code=ExitCode.REFUSED
            )
            self.assertEqual(state, found.json['state'])
            self.assertIn(
                'host node1: %s: vsched.some.code 3800 mcpu \\x1b exceed'
                % state,
                found.err,
            )
        self.change(self.pending(), reservation(state='refused'))
        found = self.run_command(self.words + ' --wait', code=ExitCode.REFUSED)
        self.assertIn('no reason', found.err)

    def test_wait_too_long(self):
        self.change(self.pending(), self.pending())
        found = self.run_command(
            self.words + ' --wait --timeout 1us', code=ExitCode.TIMED_OUT
        )
        self.assertIn('has not answered', found.err)

    def test_another_change(self):
        self.change(self.pending(), self.pending(generation=8))
        found = self.run_command(self.words + ' --wait', code=ExitCode.CHANGED)
        self.assertIn('generation 8', found.err)
        for status, code in (
            (409, 'vsched.request.generation_conflict'),
            (412, 'vsched.request.generation_conflict'),
        ):
            self.answer('PATCH', self.path, failure(status, code))
            self.run_command(
                self.words + ' --generation 1', code=ExitCode.CHANGED
            )

    def test_refused_by_the_api(self):
        for code, expected in (
            ('vsched.backend.unavailable', ExitCode.REFUSED),
            ('vsched.reservation.does_not_fit', ExitCode.REFUSED),
            ('vsched.instance.absent', ExitCode.ERROR),
        ):
            self.answer('PATCH', self.path, failure(409, code))
            found = self.run_command(self.words, code=expected)
            self.assertIn('the detail (HTTP 409, %s, req-1)' % code, found.err)

    def test_unset(self):
        self.answer('DELETE', self.path, status_code=204, text='')
        self.run_command(
            'cpu reservation unset %s --wait --generation 7' % UUID
        )
        self.assertEqual({'generation': ['7']}, self.api.last_request.qs)
        released = reservation(
            state='released', generation=0, runtime_us=None, period_us=None
        )
        self.answer(
            'DELETE',
            self.path,
            {'reservation': {**released, 'state': 'pending'}},
        )
        self.answer('GET', self.path, {'reservation': released})
        found = self.run_command(
            'cpu reservation unset %s --wait -f json' % UUID
        )
        self.assertEqual('released', found.json['state'])
        # Nothing is left by the time it is read.
        self.answer('GET', self.path, failure(404))
        self.run_command('cpu reservation unset %s --wait' % UUID)


class HostTestCase(CommandTestCase):
    host = {
        'name': 'node1',
        'state': 'up',
        'instances': 3,
        'cpus': 2,
        'capacity_mcpu': 1800,
        'admitted_mcpu': 600,
        'last_report_at': '2027-01-15T08:00:30.000000Z',
        'backends': [
            {'name': 'deadline', 'usable': True, 'reasons': []},
            {'name': 'cfs', 'usable': False, 'reasons': ['no \x1b cgroup']},
        ],
        'placement': {'state': 'synced', 'detail': ''},
        'policy': None,
        'verification': {
            'checked_at': '2027-01-15T08:00:00.000000Z',
            'cpus': 2,
            'contradictions': [
                {'code': 'vsched.host.overstated', 'detail': 'it reports'}
            ],
        },
    }

    def test_list(self):
        unknown = {
            'name': 'node2',
            'state': 'down',
            'capacity_mcpu': None,
            'backends': [],
            'placement': None,
        }
        self.answer('GET', '/v1/hosts', {'hosts': [self.host, unknown]})
        found = self.run_command('cpu host list')
        for text in ('1.8 CPU', '1.2 CPU', 'deadline', 'synced'):
            self.assertIn(text, found.out)
        first, second = self.run_command('cpu host list -f json').json
        self.assertEqual(1200, first['free_mcpu'])
        self.assertIsNone(second['free_mcpu'])
        found = self.run_command(
            'cpu host list --sort-column Free -f value -c name'
        )
        self.assertEqual('node1\nnode2\n', found.out)

    def test_show(self):
        self.answer('GET', '/v1/hosts/node1', {'host': self.host})
        found = self.run_command('cpu host show node1')
        for text in (
            'cfs: no \\x1b cgroup',
            'deadline: usable',
            'vsched.host.overstated: it reports',
            '0.6 CPU',
        ):
            self.assertIn(text, found.out)
        self.answer(
            'GET',
            '/v1/hosts/node1',
            {
                'host': {
                    **self.host,
                    'verification': {
                        **self.host['verification'],
                        'contradictions': [],
                    },
                }
            },
            {'host': {**self.host, 'verification': None}},
        )
        found = self.run_command('cpu host show node1')
        self.assertIn('none at 2027-01-15T08:00:00Z', found.out)
        self.run_command('cpu host show node1')

    def test_audit(self):
        self.answer(
            'GET',
            '/v1/hosts/node1/audit',
            {'audit': {'host': 'node1', 'agrees': True, 'differences': []}},
            {
                'audit': {
                    'host': 'node1',
                    'agrees': False,
                    'differences': [
                        {
                            'host': 'node1',
                            'kind': 'leftover',
                            'detail': 'claims 100 mcpu',
                            'consumer': UUID,
                            'claimed_mcpu': 100,
                            'promised_mcpu': 0,
                            'held_mcpu': None,
                        }
                    ],
                }
            },
        )
        found = self.run_command('cpu host audit node1 -f json')
        self.assertEqual([], found.json)
        found = self.run_command('cpu host audit node1', code=ExitCode.DIFFERS)
        self.assertIn('0.1 CPU', found.out)

    def test_errors(self):
        for status in (400, 401, 403, 404, 500, 501):
            self.answer('GET', '/v1/hosts/node1', failure(status))
            found = self.run_command(
                'cpu host show node1', code=ExitCode.ERROR
            )
            self.assertIn('HTTP %d' % status, found.err)
            self.assertEqual('', found.out)
        one = failure(500)
        one['json']['errors'][0]['detail'] = 'a\x1b[2Jb'
        self.answer('GET', '/v1/hosts/node1', one)
        found = self.run_command('cpu host show node1', code=ExitCode.ERROR)
        self.assertIn(r'a\x1b[2Jb', found.err)

    def test_an_error_on_a_later_page(self):
        self.answer(
            'GET',
            '/v1/hosts',
            {
                'hosts': [self.host],
                'links': [{'rel': 'next', 'href': '/v1/hosts?marker=node1'}],
            },
            failure(500),
        )
        self.run_command('cpu host list', code=ExitCode.ERROR)

    def test_unknown_column(self):
        self.answer('GET', '/v1/hosts', {'hosts': []})
        self.run_command('cpu host list -c other', code=ExitCode.ERROR)

    def test_traceback_on_request(self):
        self.answer('GET', '/v1/hosts/node1', failure(500))
        found = shell.run('--debug', 'cpu', 'host', 'show', 'node1', url=URL)
        self.assertEqual(ExitCode.ERROR, found.code)
        self.assertIn('Traceback', found.err)


class BalloonTestCase(CommandTestCase):
    path = '/v1/balloons/' + UUID

    def test_list_and_show(self):
        self.answer(
            'GET',
            '/v1/balloons',
            {'balloons': [balloon(state='applied'), balloon()]},
        )
        first, second = self.run_command(
            'cpu balloon list --state manual -f json'
        ).json
        self.assertEqual(
            ('applied', 2), (first['order_state'], first['target_vcpus'])
        )
        self.assertIsNone(second['order_state'])
        self.answer('GET', self.path, {'balloon': balloon(state='applied')})
        found = self.run_command('cpu balloon show ' + UUID)
        self.assertIn('target_vcpus: 2', found.out)

    def test_orders(self):
        waited = balloon(state='pending')
        self.answer('POST', '/v1/balloons', {'balloon': waited})
        self.answer('PATCH', self.path, {'balloon': waited})
        self.answer('DELETE', self.path, {'balloon': balloon()})
        self.answer('GET', self.path, {'balloon': balloon(state='applied')})
        self.run_command('cpu balloon set %s --vcpus 2 --frozen --wait' % UUID)
        self.run_command('cpu balloon freeze %s --generation 7' % UUID)
        self.assertEqual(
            {'frozen': True, 'generation': 7}, self.api.last_request.json()
        )
        self.run_command('cpu balloon freeze %s --off' % UUID)
        self.assertEqual({'frozen': False}, self.api.last_request.json())
        self.run_command('cpu balloon unset %s --wait' % UUID)
        self.answer(
            'GET',
            self.path,
            {
                'balloon': balloon(
                    state='refused', code='vsched.c', detail='no guest'
                )
            },
        )
        found = self.run_command(
            'cpu balloon set %s --vcpus 2 --wait' % UUID, code=ExitCode.REFUSED
        )
        self.assertIn('vsched.c no guest', found.err)
        self.answer(
            'POST', '/v1/balloons', failure(409, 'vsched.balloon.dry_run')
        )
        self.run_command(
            'cpu balloon set %s --vcpus 2' % UUID, code=ExitCode.REFUSED
        )
        self.run_command('cpu balloon set ' + UUID, code=ExitCode.USAGE)

    def test_history(self):
        self.answer(
            'GET',
            '/v1/balloons/history',
            {
                'history': [
                    {
                        'uuid': UUID,
                        'started_at': '2027-01-15T08:00:00.000000Z',
                        'duration_s': 630.0,
                        'took_ms': 412,
                        'manual': False,
                    }
                ]
            },
        )
        found = self.run_command(
            'cpu balloon history --instance %s --outcome kept --start '
            '2027-01-15 --end 2027-01-16' % UUID
        )
        self.assertIn('10 min 30 s', found.out)
        self.assertEqual(
            ['2027-01-15t00:00:00+00:00'], self.api.last_request.qs['start']
        )
        self.assertEqual(['50'], self.api.last_request.qs['limit'])


class JobTestCase(CommandTestCase):
    path = '/v1/jobs/' + UUID

    def test_list_and_show(self):
        self.answer('GET', '/v1/jobs', {'jobs': [job(progress_ppm=250_000)]})
        found = self.run_command('cpu job list --kind profile-error')
        self.assertIn('25 %', found.out)
        self.answer('GET', self.path, {'job': job()})
        self.assertIn(
            'quick: yes', self.run_command('cpu job show ' + UUID).out
        )

    def test_wait(self):
        self.answer(
            'GET',
            self.path,
            {'job': job(state='queued', progress_ppm=0)},
            {'job': job(state='running', progress_ppm=500_000)},
            {'job': job()},
        )
        with mock.patch('time.sleep', autospec=True):
            found = self.run_command(
                'cpu job show --wait -f json ' + UUID, err=shell.Terminal()
            )
        self.assertEqual('done', found.json['state'])
        self.assertIn('[##########..........] running  50 %', found.err)
        self.assertTrue(found.err.endswith('\n'))

    def test_changes(self):
        self.answer('PATCH', self.path, {'job': job(state='queued')})
        self.answer('GET', self.path, {'job': job(state='cancelled')})
        self.run_command('cpu job cancel --wait ' + UUID)
        self.assertEqual(
            {'wanted': 'cancel'}, self.api.request_history[-2].json()
        )
        self.answer('GET', self.path, {'job': job(state='failed')})
        found = self.run_command(
            'cpu job resume --wait ' + UUID, code=ExitCode.REFUSED
        )
        self.assertIn('the job is failed: 12 points', found.err)
        self.answer('GET', self.path, {'job': job(state='running')})
        self.run_command(
            'cpu job resume --wait --timeout 1us ' + UUID,
            code=ExitCode.TIMED_OUT,
        )


class ProfileTestCase(CommandTestCase):
    path = '/v1/hosts/node1/profiles/error'
    profile = {
        'uuid': UUID,
        'source': 'benchmark',
        'version': 3,
        'complete': True,
        'notes': ['cfs: not \x1b measured'],
    }
    point = {
        'backend': 'deadline',
        'period_us': 10_000,
        'share_ppm': 100_000,
        'contenders': 4,
        'probe': 'thread',
        'n': 180,
        'mean_ppm': -210,
        'abs_p99_ppm': 4_100,
        'min_ppm': -9_800,
        'max_ppm': 1_900,
        'bounds': [
            {'confidence_pct': 80, 'lower_ppm': -9_800, 'size_ppm': 9_800}
        ],
    }

    def test_list(self):
        for kind in ('error', 'overhead'):
            self.answer(
                'GET',
                '/v1/hosts/node1/profiles/%s/versions' % kind,
                {'%s_profiles' % kind: [self.profile]},
            )
        found = self.run_command('cpu profile list node1 -f json').json
        self.assertEqual(['error', 'overhead'], [one['kind'] for one in found])
        found = self.run_command(
            'cpu profile list node1 --kind error --source live'
        )
        self.assertIn(r'cfs: not \x1b measured', found.out)

    def test_show(self):
        self.answer(
            'GET',
            self.path,
            {'error_profiles': [{**self.profile, 'points': [self.point]}]},
        )
        found = self.run_command('cpu profile show node1 --profile-version 3')
        for text in ('10 %', '10 ms', '-0.02 %', '0.98 %'):
            self.assertIn(text, found.out)
        self.assertIn(r'note: cfs: not \x1b measured', found.err)
        self.assertEqual({'version': ['3']}, self.api.last_request.qs)
        (one,) = self.run_command('cpu profile show node1 -f json').json
        self.assertEqual(
            (9_800, None), (one['bound_80_ppm'], one['bound_95_ppm'])
        )

    def test_show_overhead(self):
        self.answer(
            'GET',
            '/v1/hosts/node1/profiles/overhead',
            {
                'overhead_profiles': [
                    {
                        **self.profile,
                        'good': True,
                        'r2': 0.97,
                        'n': 48,
                        'prices': [
                            {
                                'term': 'net_rx',
                                'cost_ns': 12_000.0,
                                'error_ns': None,
                            }
                        ],
                    }
                ]
            },
        )
        found = self.run_command('cpu profile show node1 --kind overhead')
        self.assertIn('12 us', found.out)

    def test_create(self):
        self.answer('POST', self.path, {'job': job(state='queued')})
        self.answer('GET', '/v1/jobs/' + UUID, {'job': job()})
        self.run_command(
            'cpu profile create node1 --share 10% --share 0.5 --backend cfs '
            '--period 10ms --seconds 60 --contend 0 --in-guest --wait'
        )
        self.assertEqual(
            {
                'shares_pct': [10.0, 50.0],
                'backends': ['cfs'],
                'periods_us': [10_000],
                'seconds': 60,
                'contend': 0,
                'in_guest': True,
            },
            self.api.request_history[-2].json(),
        )
        self.run_command(
            'cpu profile create node1 --kind overhead --share 1%',
            code=ExitCode.USAGE,
        )
        self.run_command(
            'cpu profile create node1 --share 1', code=ExitCode.DONE
        )
        self.run_command(
            'cpu profile create node1 --share 2', code=ExitCode.USAGE
        )

    def test_export(self):
        self.answer('GET', self.path, {'text': 'a\nb\x1b\n'})
        found = self.run_command('cpu profile export node1')
        self.assertEqual('a\nb\x1b\n', found.out)
        found = self.run_command(
            'cpu profile export node1', out=shell.Terminal()
        )
        self.assertEqual('a\nb\\x1b\n', found.out)
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'p')
        self.run_command('cpu profile export node1 -o', path)
        with open(path, encoding='utf-8') as file:
            self.assertEqual('a\nb\x1b\n', file.read())
        found = self.run_command(
            'cpu profile export node1 -o', path + '/no', code=ExitCode.USAGE
        )
        self.assertIn('cannot write', found.err)
        self.answer('GET', self.path, {'error_profiles': [self.profile]})
        found = self.run_command('cpu profile export node1 -f json')
        self.assertEqual([self.profile], found.json)

    def test_export_waits_for_the_job(self):
        self.answer('GET', self.path, {'text': 'a\n'})
        self.answer('GET', '/v1/jobs', {'jobs': [job(state='running')]})
        self.answer(
            'GET',
            '/v1/jobs/' + UUID,
            {'job': job()},
            {'job': job(state='failed')},
        )
        found = self.run_command('cpu profile export node1 --wait')
        self.assertEqual('a\n', found.out)
        found = self.run_command(
            'cpu profile export node1 --wait', code=ExitCode.REFUSED
        )
        self.assertEqual('', found.out)


class UsageTestCase(CommandTestCase):
    def sample(self, uuid=UUID, **changes):
        return {
            'instance_uuid': uuid,
            'host': 'node1',
            'at': '2027-01-15T08:00:01.000000Z',
            'interval_us': 1_000_000,
            'guest_us': 612_000,
            'wait_us': 388_000,
            'promised_us': 600_000,
            'guest_mcpu': 612,
            'promised_mcpu': 600,
            'error_ppm': 20_000,
            'direct_us': 41_000,
            'shared_us': 9_000,
            **changes,
        }

    def test_show(self):
        self.answer('GET', '/v1/usage', {'usage': [self.sample()]})
        found = self.run_command('cpu usage show ' + UUID)
        for text in ('0.612 CPU', '0.6 CPU', '+2.00 %', '0.388 CPU'):
            self.assertIn(text, found.out)
        self.assertEqual(['20'], self.api.last_request.qs['limit'])
        (one,) = self.run_command('cpu usage show -f json').json
        self.assertEqual((41, 41_000), (one['direct_mcpu'], one['direct_us']))
        self.run_command(
            'cpu usage show --of hosts ' + UUID, code=ExitCode.USAGE
        )

    def test_show_of_hosts(self):
        self.answer(
            'GET',
            '/v1/usage',
            {
                'usage': [
                    {
                        'host': 'node1',
                        'at': '2027-01-15T08:00:01.000000Z',
                        'interval_us': 0,
                        'idle_us': 5,
                    }
                ]
            },
        )
        (one,) = self.run_command(
            'cpu usage show --of hosts --resolution hour -f json'
        ).json
        self.assertIsNone(one['idle_mcpu'])

    def test_top(self):
        self.answer(
            'GET',
            '/v1/usage',
            {
                'usage': [
                    self.sample('a', guest_us=100_000),
                    self.sample('b', promised_us=None),
                    self.sample('c', guest_us=550_000, wait_us=900_000),
                ]
            },
        )
        for order, expected in (
            ('got', 'b c a'),
            ('waited', 'c a b'),
            ('host', 'a b c'),
            ('error', 'a c b'),
        ):
            found = self.run_command(
                'cpu usage top -f value -c instance_uuid --by ' + order
            )
            self.assertEqual(expected.split(), found.out.split(), order)
        found = self.run_command('cpu usage top --limit 1 --window 60s')
        self.assertIn('0.612 CPU', found.out)


class EventTestCase(CommandTestCase):
    event = {
        'uuid': UUID,
        'at': '2027-01-15T08:00:01.000000Z',
        'host': 'node1',
        'instance_uuid': None,
        'code': 'vsched.drift.repaired',
        'severity': 'warning',
        'detail': 'vCPU 0 \x1b had policy 0',
        'figures': {'policy': 0},
    }

    def setUp(self):
        super().setUp()
        self.answer('GET', '/v1/events', {'events': [self.event]})

    def test_list(self):
        found = self.run_command(
            'cpu event list --severity warning --code vsched.x --instance '
            + UUID
        )
        self.assertIn(r'vCPU 0 \x1b had policy 0', found.out)
        self.assertEqual(
            {
                'severity': ['warning'],
                'code': ['vsched.x'],
                'instance_uuid': [UUID],
                'limit': ['50'],
            },
            self.api.last_request.qs,
        )

    def test_follow(self):
        words = 'cpu event list --follow --timeout 1us'
        for form, text in (
            ('table', r'vCPU 0 \x1b had policy 0'),
            ('json', r'vCPU 0 \u001b had policy 0'),
            ('csv', r'vCPU 0 \x1b had policy 0'),
            ('yaml', r'vCPU 0 \e had policy 0'),
            ('value', r'vCPU 0 \x1b had policy 0'),
        ):
            found = self.run_command('%s -f %s' % (words, form))
            self.assertIn(text, found.out)
        found = self.run_command(words + ' -f json -c code -c Host')
        self.assertEqual(
            {'host': 'node1', 'code': 'vsched.drift.repaired'},
            json.loads(found.out),
        )
        found = self.run_command(words + ' -c Event')
        self.assertEqual(UUID + '\n', found.out)
        self.run_command(words + ' --end 2027-01-15', code=ExitCode.USAGE)


class EvaluationTestCase(CommandTestCase):
    def setUp(self):
        super().setUp()
        self.evaluation = {
            'instances': 2,
            'hosts_total': 2,
            'hosts_fit': 1,
            'room': 3,
            'all_fit': True,
            'placed': [{'host': 'node1', 'instances': 2}],
            'hosts': [
                {
                    'host': 'node1',
                    'fits': True,
                    'demand_mcpu': 504,
                    'problems': [],
                },
                {
                    'host': 'node2',
                    'fits': False,
                    'problems': [
                        {
                            'cause': 'error',
                            'detail': 'falls short \x1b',
                            'unknown': False,
                        }
                    ],
                },
            ],
        }
        self.answer('POST', '/v1/evaluations', {'evaluation': self.evaluation})

    def body(self):
        return self.api.last_request.json()

    def test_output(self):
        found = self.run_command('cpu evaluation create --share 60%')
        self.assertIn(r'error: falls short \x1b', found.out)
        self.assertIn('0.504 CPU', found.out)
        self.assertEqual(
            '1 of 2 hosts fit, with room for 3; 2 of 2 placed\n', found.err
        )
        self.evaluation.update(all_fit=False, room=None, placed=[])
        found = self.run_command(
            'cpu evaluation create --share 60% -f json', code=ExitCode.REFUSED
        )
        self.assertIn('room for any number; 0 of 2 placed', found.err)
        self.assertEqual([0, 0], [one['placed'] for one in found.json])

    def test_requests(self):
        self.run_command(
            'cpu evaluation create --runtime 5ms --period 10ms --vcpus 2 '
            '--instances 3 --host node1 --host node2 --limit 5 --property '
            'vsched:net_rx_pps=100 --property vsched:cpu_period_us=40000'
        )
        self.assertEqual(
            {
                'extra_specs': {
                    'vsched:net_rx_pps': '100',
                    'vsched:cpu_period_us': '40000',
                },
                'vcpus': 2,
                'override': {'runtime_us': 5_000, 'period_us': 10_000},
                'instances': 3,
                'hosts': ['node1', 'node2'],
                'limit': 5,
            },
            self.body(),
        )
        self.run_command(
            'cpu evaluation create --share 50% --property '
            'vsched:cpu_period_us=40000'
        )
        self.assertEqual({'runtime_us': 20_000}, self.body()['override'])
        self.run_command('cpu evaluation create --demand 150%')
        self.assertEqual({'demand_mcpu': 1500, 'instances': 1}, self.body())

    def test_a_flavor_of_nova(self):
        compute = mock.Mock(spec=['find_flavor'])
        compute.find_flavor.return_value = types.SimpleNamespace(
            extra_specs={'vsched:cpu_runtime_us': '5000'}, vcpus=4
        )
        self.run_command('cpu evaluation create --flavor m1', compute=compute)
        compute.find_flavor.assert_called_once_with(
            'm1', ignore_missing=False, get_extra_specs=True
        )
        self.assertEqual(
            {
                'extra_specs': {'vsched:cpu_runtime_us': '5000'},
                'vcpus': 4,
                'instances': 1,
            },
            self.body(),
        )

    def test_usage(self):
        for words in (
            '',
            '--demand 1 --share 60%',
            '--demand 1 --vcpus 2',
            '--demand 1 --flavor m1',
            '--property vsched',
            '--share 1% --property vsched:cpu_period_us=x',
        ):
            self.run_command(
                'cpu evaluation create ' + words, code=ExitCode.USAGE
            )


class HelpTestCase(base.BaseTestCase):
    def test_each_command_has_help(self):
        for command in entry_points.commands():
            out = io.StringIO()
            found = shell.run(*command.split(), '--help', out=out)
            self.assertEqual(0, found.code, found)
            self.assertIn('usage:', found.out)

    def test_completion(self):
        found = shell.run('complete')
        self.assertEqual(0, found.code, found.err)
        self.assertIn(
            "cmds_cpu_reservation='create list set show unset'", found.out
        )
        (options,) = (
            line
            for line in found.out.splitlines()
            if 'cmds_cpu_reservation_set=' in line
        )
        self.assertIn('--share', options)
