# SPDX-License-Identifier: Apache-2.0

"""Evaluations of flavors, reservations and demands."""

from vsched_client.tests import fake_nova
from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode


class EvaluationTestCase(command_case.CommandTestCase):
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
        compute = fake_nova.FakeNova(
            m1={'vsched:cpu_runtime_us': '5000'}, m2={}
        )
        self.run_command('cpu evaluation create --flavor m1', compute=compute)
        self.assertEqual(
            {
                'extra_specs': {'vsched:cpu_runtime_us': '5000'},
                'vcpus': 2,
                'instances': 1,
            },
            self.body(),
        )

    def test_a_flavor_that_nova_does_not_show(self):
        compute = fake_nova.FakeNova(m1={'vsched:cpu_runtime_us': '5000'})
        found = self.run_command(
            'cpu evaluation create --flavor m2 --share 60%',
            compute=compute,
            code=ExitCode.ERROR,
        )
        self.assertIn('there is no flavor m2', found.err)
        # Without its extra specs it would count as one without any.
        compute.forbidden.add('extra_specs')
        found = self.run_command(
            'cpu evaluation create --flavor m1 --share 60%',
            compute=compute,
            code=ExitCode.ERROR,
        )
        self.assertIn('os-flavor-extra-specs:index', found.err)
        compute.forbidden.add('GET')
        found = self.run_command(
            'cpu evaluation create --flavor m1',
            compute=compute,
            code=ExitCode.ERROR,
        )
        self.assertIn('nova rejects GET /flavors/detail', found.err)
        self.assertIsNone(self.api.last_request)

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
