# SPDX-License-Identifier: Apache-2.0

"""Profiles: their points, runs and files."""

import os

import fixtures
import yaml

from vsched_client.tests import shell
from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
UUID = command_case.UUID
job = command_case.job


class ProfileTestCase(command_case.CommandTestCase):
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
        found = self.run_command('cpu profile export node1 -f yaml')
        self.assertEqual([self.profile], yaml.safe_load(found.out))

    def test_export_as_a_table(self):
        self.answer(
            'GET',
            self.path,
            {'error_profiles': [{**self.profile, 'points': [self.point]}]},
        )
        words = 'cpu profile export node1 -f table'
        found = self.run_command(words)
        self.assertEqual(['benchmark'], self.api.last_request.qs['source'])
        shown = self.run_command('cpu profile show node1')
        self.assertEqual(shown.out, found.out)
        self.assertIn('Mean error', found.out)
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'p')
        self.run_command(words + ' --max-width 60 -o', path)
        with open(path, encoding='utf-8') as file:
            self.assertGreater(len(found.out), len(file.readline()))

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
