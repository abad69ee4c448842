# SPDX-License-Identifier: Apache-2.0

"""Reservations: quantities, waiting, refusals."""

from unittest import mock

from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
UUID = command_case.UUID
OTHER = '7a1d2c3b-4e5f-4a6b-8c7d-9e0f1a2b3c4d'
failure = command_case.failure


def reservation(**changes):
    """Return a reservation of 60 %."""
    return {
        'instance_uuid': UUID,
        'instance_name': 'instance-00000001',
        'server_name': 'vm\x1b[31m',
        'project_id': '8a4d1c9e7b2f4f0f9d3a5e6c1b0a9f8e',
        'flavor_name': 'rt.small',
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


class ReservationTestCase(command_case.CommandTestCase):
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
            'refused --source override --backend deadline --server-project '
            'p1 --server-name web --flavor rt.small --instance %s --instance '
            '%s --sort state:desc' % (UUID, OTHER)
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
                'project_id': ['p1'],
                'server_name': ['web'],
                'flavor_name': ['rt.small'],
                'instance_uuid': [UUID, OTHER],
                'sort_key': ['state'],
                'sort_dir': ['desc'],
            },
            self.api.last_request.qs,
        )
        first, second = self.run_command('cpu reservation list -f json').json
        self.assertEqual('vm\x1b[31m', first['server_name'])
        self.assertEqual('rt.small', first['flavor_name'])
        self.assertEqual(1200, first['enforced_bandwidth_mcpu'])
        self.assertIsNone(second['enforced_backend'])
        found = self.run_command(
            'cpu reservation list -f value -c server_name -c runtime_us'
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
