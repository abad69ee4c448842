# SPDX-License-Identifier: Apache-2.0

"""Tests of commands against answers that they make up."""

from oslotest import base
from requests_mock.contrib import fixture

from vsched_client.osc import exit_codes
from vsched_client.tests import shell
from vsched_client.tests.unit import api_case

URL = api_case.URL
UUID = '6f1c0e5a-2b7d-4c39-9a41-0d8e5f7b6c12'
ExitCode = exit_codes.ExitCode

failure = api_case.failure


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
        'eta_s': None,
        'created_at': '2027-01-15T08:00:00.000000Z',
        'started_at': '2027-01-15T08:00:01.000000Z',
        'updated_at': '2027-01-15T08:04:30.000000Z',
        **changes,
    }


class CommandTestCase(base.BaseTestCase):
    """Takes the requests of the commands that it runs.

    :ivar api: a fixture of requests-mock.
    """

    def setUp(self):
        super().setUp()
        self.api = self.useFixture(fixture.Fixture())

    def answer(self, method, path, *answers, **more):
        """Have requests for a path answered one after the other."""
        if answers:
            more['response_list'] = [
                one if {'json', 'text'} & one.keys() else {'json': one}
                for one in answers
            ]
        return self.api.register_uri(method, URL + path, **more)

    def run_command(self, text, *words, code=ExitCode.DONE, **more):
        """Run a command and check its exit code.

        :param text: words that have no blanks.
        """
        found = shell.run(*text.split(), *words, url=URL, **more)
        self.assertEqual(code, found.code, found)
        return found
