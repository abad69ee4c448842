# SPDX-License-Identifier: Apache-2.0

"""Who changes something, and what they know of it."""

from oslo_policy import policy

from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.tests import balloon_reports

Code = errors.Code


class TestGenerations(base.TestCase):
    """By ETag and If-Match, or by the field."""

    def setUp(self):
        super().setUp()
        (self.one,) = base.uuids(1)
        self.agent().first(
            self.one,
            balloons=(
                balloon_reports.report(self.one, vcpus=4, online_vcpus=4),
            ),
        )
        self.http = self.client()
        self.path = '/v1/reservations/' + self.one

    def patch(self, path=None, headers=None, **body):
        return self.http.patch(
            path or self.path, json=body, headers=headers or {}
        )

    def code(self, answer):
        return answer.status_code, answer.json['errors'][0]['code']

    def test_an_etag(self):
        tag = self.http.get(self.path).headers['ETag']
        self.assertEqual('"0"', tag)
        answer = self.patch(headers={'If-Match': tag}, runtime_us=6_000)
        self.assertEqual(202, answer.status_code)
        self.assertEqual(
            '"%d"' % answer.json['reservation']['generation'],
            answer.headers['ETag'],
        )
        self.assertEqual(
            (412, Code.GENERATION_CONFLICT),
            self.code(self.patch(headers={'If-Match': tag}, runtime_us=7_000)),
        )
        self.assertEqual(
            202,
            self.patch(
                headers={'If-Match': '*'}, runtime_us=7_000
            ).status_code,
        )
        self.assertEqual(
            412,
            self.http.delete(self.path, headers={'If-Match': tag}).status_code,
        )
        tag = self.http.get(self.path).headers['ETag']
        self.assertEqual(
            202,
            self.http.delete(self.path, headers={'If-Match': tag}).status_code,
        )

    def test_the_field(self):
        answer = self.patch(generation=0, runtime_us=6_000)
        known = answer.json['reservation']['generation']
        self.assertEqual(
            (409, Code.GENERATION_CONFLICT),
            self.code(self.patch(generation=0, runtime_us=7_000)),
        )
        self.assertEqual(
            409, self.http.delete(self.path + '?generation=0').status_code
        )
        self.assertEqual(
            202,
            self.http.delete(self.path + '?generation=%d' % known).status_code,
        )

    def test_without_one_the_change_is_unconditional(self):
        for runtime_us in (6_000, 7_000):
            self.assertEqual(
                202, self.patch(runtime_us=runtime_us).status_code
            )

    def test_what_is_no_generation(self):
        for headers, body in (
            ({'If-Match': 'W/"0"'}, {}),
            ({'If-Match': '0'}, {}),
            ({'If-Match': '"0", "1"'}, {}),
            ({'If-Match': '"x"'}, {}),
            ({'If-Match': '"%s"' % ('9' * 5000)}, {}),
            ({'If-Match': '"1"'}, {'generation': 0}),
            ({}, {'generation': -1}),
            ({}, {'generation': None}),
        ):
            answer = self.patch(headers=headers, runtime_us=6_000, **body)
            self.assertEqual((400, Code.BAD_REQUEST), self.code(answer))
        self.assertEqual(
            (400, Code.BAD_REQUEST), self.code(self.patch(generation=0))
        )

    def test_balloons(self):
        path = '/v1/balloons/' + self.one
        tag = self.http.get(path).headers['ETag']
        self.assertEqual(
            202,
            self.patch(path, {'If-Match': tag}, target_vcpus=2).status_code,
        )
        self.assertEqual(
            412,
            self.patch(path, {'If-Match': tag}, target_vcpus=3).status_code,
        )
        self.assertEqual(
            409,
            self.http.post(
                '/v1/balloons',
                json={
                    'instance_uuid': self.one,
                    'target_vcpus': 3,
                    'generation': 0,
                },
            ).status_code,
        )
        known = self.http.get(path).json['balloon']['order']
        self.assertEqual(
            (2, 'noauth'), (known['target_vcpus'], known['set_by']['user_id'])
        )
        self.assertEqual(
            409, self.http.delete(path + '?generation=1').status_code
        )
        self.assertEqual(
            202,
            self.http.delete(
                path + '?generation=%d' % known['generation']
            ).status_code,
        )


class TestAuthors(base.TestCase):
    """Who set an override."""

    def setUp(self):
        super().setUp()
        (self.one,) = base.uuids(1)
        self.agent().first(self.one)
        self.http = self.client()
        self.path = '/v1/reservations/' + self.one

    def test_it_is_shown(self):
        self.assertIsNone(
            self.http.get(self.path).json['reservation']['override']
        )
        answer = self.http.patch(self.path, json={'runtime_us': 6_000})
        found = self.http.get(self.path).json['reservation']['override']
        self.assertEqual(
            ('noauth', 'noauth', answer.headers['X-Openstack-Request-Id']),
            (found['user_id'], found['project_id'], found['request_id']),
        )
        self.assertIsNotNone(found['updated_at'])
        (event,) = self.http.get('/v1/events?instance_uuid=' + self.one).json[
            'events'
        ]
        self.assertEqual(Code.OVERRIDE_SET, event['code'])
        self.assertEqual(found['request_id'], event['figures']['request_id'])

    def test_a_policy_guards_it(self):
        self.http.patch(self.path, json={'runtime_us': 6_000})
        enforcer = self.http.application.extensions['vsched'].enforcer
        enforcer.load_rules()
        enforcer.set_rules(
            policy.Rules.from_dict({'vsched:reservations:show_author': '!'}),
            overwrite=False,
            use_conf=False,
        )
        found = self.http.get(self.path)
        self.assertEqual(200, found.status_code)
        self.assertIsNone(found.json['reservation']['override'])

    def test_what_else_is_overridden(self):
        self.http.patch(
            self.path,
            json={
                'max_alloc_error_pct': 2.5,
                'weight': 300,
                'io_charging': 'charge',
                'comm_aware': False,
            },
        )
        found = self.http.get(self.path).json['reservation']
        self.assertEqual(
            (2.5, 300, 'charge', False, None, None),
            tuple(
                found[key]
                for key in (
                    'max_alloc_error_pct',
                    'weight',
                    'io_charging',
                    'comm_aware',
                    'balloon',
                    'min_vcpus',
                )
            ),
        )
        for key, value in (
            ('max_alloc_error_pct', 0),
            ('max_alloc_error_pct', 101),
            ('max_alloc_error_pct', '2'),
            ('weight', 0),
            ('weight', 1.5),
            ('io_charging', 'free'),
            ('comm_aware', 'false'),
            ('comm_aware', 0),
            ('balloon', 'on'),
            ('min_vcpus', 5),
            ('max_alloc_error_pct', 2.1234567890123),
        ):
            answer = self.http.patch(self.path, json={key: value})
            self.assertEqual(400, answer.status_code, (key, value))
            self.assertIn(key, answer.json['errors'][0]['detail'])
