# SPDX-License-Identifier: Apache-2.0

"""Pages of other origins use the service where an operator allows it."""

import ddt

from vsched_api.tests import base

PAGE = 'https://pages.example.org'
OTHER = 'https://other.example.org'


@ddt.ddt
class TestCors(base.TestCase):
    """With one allowed origin, and without."""

    def allow(self):
        self.conf.set_override('allowed_origin', [PAGE], 'cors')

    def preflight(self, origin=PAGE, method='PATCH', headers='X-Auth-Token'):
        return self.client().options(
            '/v1/reservations',
            headers={
                'Origin': origin,
                'Access-Control-Request-Method': method,
                'Access-Control-Request-Headers': headers,
            },
        )

    def test_it_is_off_by_default(self):
        answer = self.client().get('/v1/hosts', headers={'Origin': PAGE})
        self.assertEqual(200, answer.status_code)
        self.assertNotIn('Access-Control-Allow-Origin', answer.headers)
        self.assertEqual(405, self.preflight().status_code)

    def test_an_answer_to_a_page(self):
        self.allow()
        answer = self.client().get('/v1/hosts', headers={'Origin': PAGE})
        self.assertEqual(PAGE, answer.headers['Access-Control-Allow-Origin'])
        self.assertNotIn('Access-Control-Allow-Credentials', answer.headers)
        self.assertLessEqual(
            {'X-Openstack-Request-Id', 'ETag', 'OpenStack-API-Version'},
            set(answer.headers['Access-Control-Expose-Headers'].split(',')),
        )
        self.assertIn('Origin', answer.headers['Vary'])

    def test_an_error_is_readable_as_well(self):
        self.allow()
        answer = self.client().get(
            '/v1/hosts/nowhere', headers={'Origin': PAGE}
        )
        self.assertEqual(404, answer.status_code)
        self.assertEqual(PAGE, answer.headers['Access-Control-Allow-Origin'])

    @ddt.data('If-Match', 'Content-Type', 'X-Auth-Token')
    def test_a_page_may_ask_before(self, header):
        self.allow()
        answer = self.preflight(headers=header)
        self.assertEqual(200, answer.status_code)
        self.assertEqual(PAGE, answer.headers['Access-Control-Allow-Origin'])
        self.assertEqual(
            'PATCH', answer.headers['Access-Control-Allow-Methods']
        )

    @ddt.data(
        {'origin': OTHER}, {'method': 'PUT'}, {'headers': 'X-Service-Token'}
    )
    def test_other_pages_methods_and_headers_are_not_allowed(self, request):
        self.allow()
        answer = self.preflight(**request)
        self.assertNotIn('Access-Control-Allow-Origin', answer.headers)

    def test_other_pages_read_nothing(self):
        self.allow()
        answer = self.client().get('/v1/hosts', headers={'Origin': OTHER})
        self.assertNotIn('Access-Control-Allow-Origin', answer.headers)
