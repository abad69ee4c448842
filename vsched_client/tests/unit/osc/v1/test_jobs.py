# SPDX-License-Identifier: Apache-2.0

"""Jobs, and waiting for their end."""

from unittest import mock

from vsched_client.tests import shell
from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
UUID = command_case.UUID
job = command_case.job


class JobTestCase(command_case.CommandTestCase):
    path = '/v1/jobs/' + UUID

    def test_list_and_show(self):
        self.answer(
            'GET',
            '/v1/jobs',
            {'jobs': [job(progress_ppm=250_000, eta_s=90.0)]},
        )
        found = self.run_command('cpu job list --kind profile-error')
        self.assertIn('25 %', found.out)
        for text in ('1 min 30 s', '2027-01-15T08:00:01Z'):
            self.assertIn(text, found.out)
        (one,) = self.run_command('cpu job list -f json').json
        self.assertEqual(
            (90.0, '2027-01-15T08:00:01.000000Z'),
            (one['eta_s'], one['started_at']),
        )
        self.answer('GET', self.path, {'job': job()})
        found = self.run_command('cpu job show ' + UUID)
        for text in ('quick: yes', 'Time left', '2027-01-15T08:00:01Z'):
            self.assertIn(text, found.out)

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
