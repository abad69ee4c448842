# SPDX-License-Identifier: Apache-2.0

"""Hosts and audits; errors that any command may get."""

from vsched_client.tests import shell
from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
URL = command_case.URL
UUID = command_case.UUID
failure = command_case.failure


class HostTestCase(command_case.CommandTestCase):
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

    def test_how_many_findings_hosts_have(self):
        counts = (
            {'problem': 1, 'note': 2},
            {'problem': 2, 'note': 0},
            {'problem': 0, 'note': 0},
            None,
        )
        # As by an API of an earlier release.
        hosts = [
            self.host,
            *({**self.host, 'finding_counts': one} for one in counts),
        ]
        self.answer('GET', '/v1/hosts', {'hosts': hosts})
        found = self.run_command('cpu host list')
        for text in (
            'Findings',
            '1 problem, 2 notes',
            '| 2 problems ',
            'none',
        ):
            self.assertIn(text, found.out)
        found = self.run_command('cpu host list -f json')
        self.assertEqual(
            [None, *counts], [one['finding_counts'] for one in found.json]
        )

    def test_filters_and_order(self):
        self.answer('GET', '/v1/hosts', {'hosts': []})
        self.run_command('cpu host list')
        self.assertEqual({}, self.api.last_request.qs)
        self.run_command(
            'cpu host list --state down --name-prefix rack1- --backend cfs '
            '--sort admitted_mcpu:desc --limit 5'
        )
        self.assertEqual(
            {
                'state': ['down'],
                'name_prefix': ['rack1-'],
                'backend': ['cfs'],
                'sort_key': ['admitted_mcpu'],
                'sort_dir': ['desc'],
                'limit': ['5'],
            },
            self.api.last_request.qs,
        )
        for order in ('name', 'name:asc'):
            self.run_command('cpu host list --sort ' + order)
            self.assertEqual({'sort_key': ['name']}, self.api.last_request.qs)
        for order in ('', 'cpus', 'name:', 'name:up', ':desc'):
            found = self.run_command(
                'cpu host list --sort', order, code=ExitCode.USAGE
            )
            self.assertIn('admitted_mcpu', found.err)

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

    def test_findings(self):
        finding = {
            'level': 'problem',
            'subject': 'cgroup',
            'text': 'no control groups \x1b are mounted',
            'remedy': 'mount them',
        }
        without = {
            'level': 'note',
            'subject': 'kernel',
            'text': 'its options are unknown',
            'remedy': '',
        }
        self.answer(
            'GET',
            '/v1/hosts/node1',
            *(
                {'host': {**self.host, 'findings': findings}}
                for findings in ([finding, without], [finding], [], None)
            ),
        )
        shown = self.run_command('cpu host show node1 -c Findings').out
        for text in (
            'problem: cgroup: no control groups \\x1b are mounted',
            '  -> mount them',
            'note: kernel: its options are unknown',
        ):
            self.assertIn(text, shown)
        self.assertEqual(
            [finding],
            self.run_command('cpu host show node1 -f json').json['findings'],
        )
        for text in ('none', '-'):
            shown = self.run_command('cpu host show node1 -c Findings').out
            self.assertRegex(shown, r'Findings +\| %s +\|' % text)

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
