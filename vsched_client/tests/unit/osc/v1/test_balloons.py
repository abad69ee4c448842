# SPDX-License-Identifier: Apache-2.0

"""Balloons: orders and their answers."""

from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
UUID = command_case.UUID
failure = command_case.failure


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


class BalloonTestCase(command_case.CommandTestCase):
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
        self.run_command(
            'cpu balloon list --instance %s --server-project p1 --flavor m1 '
            '--host node1 --server-name web-1' % UUID
        )
        self.assertEqual(
            {
                'instance_uuid': [UUID],
                'project_id': ['p1'],
                'server_name': ['web-1'],
                'flavor_name': ['m1'],
                'host': ['node1'],
            },
            self.api.last_request.qs,
        )
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
                        'server_name': 'web-1',
                        'duration_s': 630.0,
                        'took_ms': 412,
                        'manual': False,
                    }
                ]
            },
        )
        found = self.run_command(
            'cpu balloon history --instance %s --outcome kept --start '
            '2027-01-15 --end 2027-01-16 --server-name web-1 '
            '--server-project p1 --flavor m1' % UUID
        )
        self.assertIn('10 min 30 s', found.out)
        self.assertEqual(
            ['2027-01-15t00:00:00+00:00'], self.api.last_request.qs['start']
        )
        self.assertEqual(['50'], self.api.last_request.qs['limit'])
        self.assertIn('web-1', found.out)
        for name, value in (
            ('server_name', 'web-1'),
            ('project_id', 'p1'),
            ('flavor_name', 'm1'),
        ):
            self.assertEqual([value], self.api.last_request.qs[name])
