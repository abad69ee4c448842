# SPDX-License-Identifier: Apache-2.0

"""Which version a request gets."""

from vsched_api.tests import base
from vsched_lib.contract import errors

HEADER = 'OpenStack-API-Version'


class TestMicroversion(base.TestCase):
    """1.0 is the only one there is."""

    def setUp(self):
        super().setUp()
        self.http = self.client()

    def get(self, *values, path='/v1/hosts'):
        return self.http.get(
            path, headers=[(HEADER, value) for value in values]
        )

    def test_accepted(self):
        for values in (
            (),
            ('vsched 1.0',),
            ('vsched latest',),
            ('VSCHED 1.0',),
            ('compute 2.96',),
            ('compute 2.96, vsched 1.0',),
        ):
            answer = self.get(*values)
            self.assertEqual(200, answer.status_code, values)
            self.assertEqual('vsched 1.0', answer.headers[HEADER])
            self.assertIn(HEADER, answer.headers['Vary'])

    def test_not_ours(self):
        for wanted in ('1.1', '0.9', '2.0', '-1.0'):
            answer = self.get('vsched ' + wanted)
            self.assertEqual(406, answer.status_code)
            (problem,) = answer.json['errors']
            self.assertEqual(errors.Code.NOT_ACCEPTABLE, problem['code'])
            self.assertEqual(
                ('1.0', '1.0'),
                (problem['min_version'], problem['max_version']),
            )
            self.assertEqual('vsched 1.0', answer.headers[HEADER])

    def test_none_at_all(self):
        for wanted in ('x', '1', '1.', '1.0.0', '1.x'):
            answer = self.get('vsched ' + wanted)
            self.assertEqual(400, answer.status_code)
            self.assertIn(HEADER, answer.json['errors'][0]['detail'])

    def test_errors_say_it_too(self):
        for path in ('/nope', '/v1/hosts/nope', '/v1/hosts?limit=x'):
            answer = self.get(path=path)
            self.assertEqual('vsched 1.0', answer.headers[HEADER])
            self.assertTrue(answer.headers['X-Openstack-Request-Id'])
