# SPDX-License-Identifier: Apache-2.0

"""Events, listed and followed."""

import json

from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
UUID = command_case.UUID


class EventTestCase(command_case.CommandTestCase):
    event = {
        'uuid': UUID,
        'at': '2027-01-15T08:00:01.000000Z',
        'host': 'node1',
        'instance_uuid': UUID,
        'server_name': 'web-1',
        'project_id': 'p1',
        'flavor_name': 'm1',
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
            'cpu event list --severity warning --code vsched.x --instance %s '
            '--instance %s' % (UUID, UUID)
        )
        self.assertIn(r'vCPU 0 \x1b had policy 0', found.out)
        self.assertEqual(
            {
                'severity': ['warning'],
                'code': ['vsched.x'],
                'instance_uuid': [UUID, UUID],
                'limit': ['50'],
            },
            self.api.last_request.qs,
        )

    def test_servers(self):
        words = ' --server-name web-1 --server-project p1 --flavor m1'
        (found,) = self.run_command('cpu event list -f json' + words).json
        self.assertEqual(
            ('web-1', 'p1', 'm1'),
            (found['server_name'], found['project_id'], found['flavor_name']),
        )
        for more in ('', ' --follow --timeout 1us'):
            self.run_command('cpu event list' + words + more)
            sent = self.api.last_request.qs
            self.assertEqual(
                (['web-1'], ['p1'], ['m1']),
                (sent['server_name'], sent['project_id'], sent['flavor_name']),
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
