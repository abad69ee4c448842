# SPDX-License-Identifier: Apache-2.0

"""Tests of the library against answers that they make up."""

from keystoneauth1 import noauth
from keystoneauth1 import session
from oslotest import base
from requests_mock.contrib import fixture

from vsched_client.v1 import client

URL = 'http://vsched.example:8790'


class ApiTestCase(base.BaseTestCase):
    """Has a client, and takes its requests.

    :ivar api: a fixture of requests-mock.
    :ivar slept: the delays before repetitions.
    """

    def setUp(self):
        super().setUp()
        self.api = self.useFixture(fixture.Fixture())
        self.slept = []
        self.client = self.make()

    def make(self, **options):
        """Return a client."""
        return client.Client(
            session.Session(noauth.NoAuth(URL)),
            sleep=self.slept.append,
            **options,
        )

    def answer(self, method, path, *answers, **more):
        """Have requests for a path answered one after the other."""
        if answers:
            more['response_list'] = [
                one if 'json' in one or 'text' in one else {'json': one}
                for one in answers
            ]
        return self.api.register_uri(method, URL + path, **more)


def failure(status, code='vsched.some.code', **headers):
    """Return an answer that is an error."""
    return {
        'status_code': status,
        'json': {
            'errors': [
                {
                    'status': status,
                    'title': 'Title',
                    'detail': 'the detail',
                    'code': code,
                    'request_id': 'req-1',
                }
            ]
        },
        'headers': {
            name.replace('_', '-'): text for name, text in headers.items()
        },
    }
