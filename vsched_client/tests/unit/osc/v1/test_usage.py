# SPDX-License-Identifier: Apache-2.0

"""Usage of instances and hosts."""

from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
UUID = command_case.UUID


class UsageTestCase(command_case.CommandTestCase):
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

    def test_show_of_servers(self):
        self.answer('GET', '/v1/usage', {'usage': [self.sample()]})
        self.run_command(
            'cpu usage show %s %s --server-name web-1 --server-project p1 '
            '--flavor m1' % (UUID, UUID)
        )
        sent = self.api.last_request.qs
        self.assertEqual(
            ([UUID, UUID], ['web-1'], ['p1'], ['m1']),
            (
                sent['instance_uuid'],
                sent['server_name'],
                sent['project_id'],
                sent['flavor_name'],
            ),
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

    def total(self, uuid=UUID, **changes):
        return self.sample(
            uuid, **{'samples': 1, 'promised_guest_us': 612_000, **changes}
        )

    def top(self, *totals, covered_us=None):
        """Answer with the totals of one host."""
        window = {
            'host': 'node1',
            'newest_at': '2027-01-15T08:00:01.000000Z',
            'covered_us': covered_us,
        }
        self.answer(
            'GET',
            '/v1/usage/totals',
            {'totals': list(totals), 'hosts': [window]},
        )

    def test_top(self):
        self.top(
            self.total('a', guest_us=100_000, promised_guest_us=100_000),
            self.total('b', promised_us=None, promised_guest_us=0),
            self.total(
                'c',
                guest_us=550_000,
                promised_guest_us=550_000,
                wait_us=900_000,
            ),
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
        self.assertEqual('', found.err)
        self.assertEqual(['60000000'], self.api.last_request.qs['window_us'])
        for window in ('0s', '61min'):
            self.run_command(
                'cpu usage top --window ' + window, code=ExitCode.USAGE
            )

    def test_top_with_too_many_samples(self):
        self.top(*map(self.total, 'abc'), covered_us=2_000_000)
        found = self.run_command('cpu usage top --host node1 -f json')
        self.assertEqual(
            'warning: 1 of 1 hosts have more samples in the window than are '
            'read: for host node1 they cover 2.0 s of it\n',
            found.err,
        )
        self.assertEqual(3, len(found.json))

    def test_servers(self):
        named = {
            'server_name': 'web-1\x1b',
            'project_id': 'p1',
            'flavor_name': 'm1.reserved',
        }
        self.answer('GET', '/v1/usage', {'usage': [self.sample(**named)]})
        self.top(self.total(**named))
        words = ' --server-name web-1 --server-project p1 --flavor m1.reserved'
        for command in ('cpu usage show', 'cpu usage top --host node1'):
            found = self.run_command(command + words)
            asked = self.api.last_request.qs
            self.assertEqual(
                [['web-1'], ['p1'], ['m1.reserved']],
                [asked[name] for name in named],
            )
            self.assertIn('| web-1\\x1b ', found.out)
            self.assertNotIn('m1.reserved', found.out)
            found = self.run_command(
                command + ' -c Project -c Flavor -f table'
            )
            self.assertIn('m1.reserved', found.out)
            self.assertIn('p1', found.out)
            (one,) = self.run_command(command + ' -f json').json
            self.assertLessEqual(named.items(), one.items())
            self.assertFalse(set(named) & set(self.api.last_request.qs))
        for word in ('--server-name', '--server-project', '--flavor'):
            self.run_command(
                'cpu usage show --of hosts %s x' % word, code=ExitCode.USAGE
            )
