# SPDX-License-Identifier: Apache-2.0

"""What a request may not say, and what it is told."""

import io
import json

import ddt

from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import reservation

Code = errors.Code

ONE = '3a9d1c3e-5b1c-4c53-a2a4-6bb0a2e0a1a1'
#: No instance has it.
NONE = '99999999-9999-4999-8999-999999999999'
OTHER = '3a9d1c3e-5b1c-4c53-a2a4-6bb0a2e0a1a2'

# (field that is named, code, body)
BAD_CHANGES = (
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": "6000"}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": -1}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": 0}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": 6000.5}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": true}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": null}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": [6000]}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": 9223372036854775808}'),
    ('runtime_us', Code.BAD_REQUEST, '{"runtime_us": 1e400}'),
    ('runtime_us', Code.RESERVATION_INVALID, '{"runtime_us": 6000.0}'),
    ('runtime_us', Code.RESERVATION_INVALID, '{"runtime_us": 20001}'),
    (
        'runtime_us',
        Code.BAD_REQUEST,
        '{"runtime_us": 6000, "runtime_us": 7000}',
    ),
    ('period_us', Code.BAD_REQUEST, '{"period_us": {}}'),
    ('period_us', Code.RESERVATION_INVALID, '{"period_us": 5000000}'),
    ('mode', Code.BAD_REQUEST, '{"mode": "CAPPED"}'),
    ('mode', Code.BAD_REQUEST, '{"mode": null}'),
    ('mode', Code.BAD_REQUEST, '{"mode": "c\\u0430pped"}'),
    ('backend', Code.BAD_REQUEST, '{"backend": "deadline\\u0000"}'),
    ('backend', Code.BAD_REQUEST, '{"backend": "%s"}' % ('x' * 9000)),
    (
        'backend',
        Code.RESERVATION_INVALID,
        '{"backend": "cfs", "mode": "work_conserving"}',
    ),
    ('backend', Code.BAD_REQUEST, '{"backend": "magic"}'),
    ('backend', Code.BAD_REQUEST, '{"backend": "RTDS"}'),
    ('colour', Code.BAD_REQUEST, '{"runtime_us": 6000, "colour": 1}'),
    ('host', Code.BAD_REQUEST, '{"host": "node2"}'),
    ('\\udcff', Code.BAD_REQUEST, '{"\\udcff": 1}'),
    ('body', Code.BAD_REQUEST, '{}'),
    ('body', Code.BAD_REQUEST, '[]'),
    ('body', Code.BAD_REQUEST, '"x"'),
    ('body', Code.BAD_REQUEST, 'null'),
    ('body', Code.BAD_REQUEST, ''),
    ('body', Code.BAD_REQUEST, '{"runtime_us": }'),
    ('body', Code.BAD_REQUEST, '{"runtime_us": NaN}'),
    ('body', Code.BAD_REQUEST, '{"runtime_us": 6000'),
    ('body', Code.BAD_REQUEST, '[' * 60_000),
    ('body', Code.BAD_REQUEST, '{"runtime_us": %s}' % ('9' * 5000)),
    ('body', Code.BAD_REQUEST, b'\xff\xfe{}'),
)

BAD_NEW = (
    ('instance_uuid', '{"runtime_us": 6000}'),
    ('runtime_us', '{"instance_uuid": "%s"}' % ONE),
    ('instance_uuid', '{"instance_uuid": "x", "runtime_us": 6000}'),
    ('instance_uuid', '{"instance_uuid": 7, "runtime_us": 6000}'),
    ('instance_uuid', '{"instance_uuid": "%s\\n", "runtime_us": 1}' % ONE),
    (
        'source',
        '{"instance_uuid": "%s", "runtime_us": 6000, "source": "x"}' % ONE,
    ),
)

BAD_QUERIES = (
    ('limit', '/v1/hosts?limit=0'),
    ('limit', '/v1/hosts?limit=-1'),
    ('limit', '/v1/hosts?limit=ten'),
    ('limit', '/v1/hosts?limit=1&limit=2'),
    ('limit', '/v1/hosts?limit=99999999999999999999999'),
    ('limit', '/v1/hosts?limit=%D9%A1'),
    ('marker', '/v1/hosts?marker='),
    ('marker', '/v1/hosts?marker=a%00b'),
    ('marker', '/v1/hosts?marker=' + 'x' * 300),
    ('name', '/v1/hosts/a%00b'),
    ('colour', '/v1/hosts?colour=red'),
    ('colour', '/v1/hosts/node1?colour=red'),
    ('colour', '/?colour=red'),
    ('colour', '/v1?colour=red'),
    ('colour', '/readiness?colour=red'),
    ('colour', '/metrics?colour=red'),
    # MariaDB would find node1.
    ('name', '/v1/hosts/node1%20'),
    ('name', '/v1/hosts/node1%20/profiles/error'),
    ('host', '/v1/events?host=node1%20'),
    ('host', '/v1/events?host=%0Anode1'),
    ('marker', '/v1/hosts?marker=node1%20'),
    ('present', '/v1/instances?present=maybe'),
    ('marker', '/v1/instances?marker=node1'),
    ('marker', '/v1/instances?sort_key=host&marker=%s' % NONE),
    ('sort_key', '/v1/instances?sort_key=name'),
    ('state', '/v1/instances?state=running'),
    ('instance_uuid', '/v1/instances/node1'),
    ('state', '/v1/reservations?state=applied&state=gone'),
    ('source', '/v1/reservations?source=x'),
    ('backend', '/v1/reservations?backend=x'),
    ('instance_uuid', '/v1/reservations?instance_uuid=x'),
    (
        'instance_uuid',
        '/v1/reservations?instance_uuid=%s&instance_uuid=' % ONE,
    ),
    (
        'instance_uuid',
        '/v1/reservations?' + '&'.join(['instance_uuid=' + ONE] * 101),
    ),
    ('sort_key', '/v1/reservations?sort_key=colour'),
    ('sort_dir', '/v1/reservations?sort_dir=up'),
    ('marker', '/v1/reservations?sort_key=host&marker=' + OTHER),
    ('state', '/v1/hosts?state=x'),
    ('state', '/v1/hosts?state=up&state=down'),
    ('backend', '/v1/hosts?backend=x'),
    ('name_prefix', '/v1/hosts?name_prefix='),
    ('name_prefix', '/v1/hosts?name_prefix=node%00'),
    ('sort_key', '/v1/hosts?sort_key=colour'),
    ('sort_dir', '/v1/hosts?sort_dir=1'),
    ('marker', '/v1/hosts?sort_key=last_report_at&marker=x'),
    ('instance_uuid', '/v1/reservations/x'),
    ('instance_uuid', '/v1/reservations/%s0' % ONE),
    ('severity', '/v1/events?severity=x'),
    ('start', '/v1/events?start=yesterday'),
    ('end', '/v1/events?end=9999-99-99'),
    ('marker', '/v1/events?marker=' + ONE),
    ('sort_dir', '/v1/usage?sort_dir=up'),
    ('marker', '/v1/usage?marker=7'),
    ('marker', '/v1/usage?marker=x'),
    ('start', '/v1/usage?start=2026-13-01T00:00:00Z'),
    ('end', '/v1/usage?start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z'),
    ('resolution', '/v1/usage?resolution=second'),
    ('marker', '/v1/usage?resolution=minute&marker=7'),
    ('marker', '/v1/usage?resolution=hour&instance_uuid=%s&marker=7' % ONE),
    ('end', '/v1/usage?resolution=hour&start=2026-01-02&end=2026-01-01'),
    ('instance_uuid', '/v1/usage?resolution=hour&instance_uuid=x'),
    ('format', '/v1/usage?format=xml'),
    ('window_us', '/v1/usage/totals?window_us=0'),
    ('marker', '/v1/usage/totals?marker=node1'),
)


@ddt.ddt
class TestRequests(base.TestCase):
    """Each problem is a 4xx that starts with the name of the field."""

    def setUp(self):
        super().setUp()
        self.agent().first(ONE)
        self.http = self.client()

    def problem(self, answer, field, code):
        self.assertEqual('application/json', answer.content_type)
        self.assertEqual(
            {400: 400, 409: 409}.get(answer.status_code),
            answer.status_code,
            answer.text,
        )
        found = answer.json['errors']
        for one in found:
            self.assertEqual(answer.status_code, one['status'])
            self.assertEqual(
                answer.headers['X-Openstack-Request-Id'], one['request_id']
            )
            self.assertLess(len(one['detail']), 600)
        self.assertEqual({code}, {one['code'] for one in found})
        self.assertIn(
            field,
            ' '.join(
                one['detail']
                if 'more than once' in one['detail']
                else one['detail'].split(' ')[0]
                for one in found
            ),
        )

    @ddt.data(*BAD_CHANGES)
    @ddt.unpack
    def test_bad_change(self, field, code, body):
        before = self.http.get('/v1/reservations/' + ONE).json
        self.problem(
            self.http.patch(
                '/v1/reservations/' + ONE,
                data=body,
                content_type='application/json',
            ),
            field,
            code,
        )
        self.assertEqual(before, self.http.get('/v1/reservations/' + ONE).json)

    @ddt.data(*BAD_NEW)
    @ddt.unpack
    def test_bad_new(self, field, body):
        self.problem(
            self.http.post(
                '/v1/reservations', data=body, content_type='application/json'
            ),
            field,
            Code.BAD_REQUEST,
        )

    @ddt.data(*BAD_QUERIES)
    @ddt.unpack
    def test_bad_query(self, field, path):
        self.problem(self.http.get(path), field, Code.BAD_REQUEST)

    def test_several_instances_are_asked_for_at_once(self):
        answer = self.http.get(
            '/v1/reservations',
            query_string={'instance_uuid': [OTHER] * 99 + [ONE.upper()]},
        )
        self.assertEqual(
            [ONE],
            [one['instance_uuid'] for one in answer.json['reservations']],
        )

    def test_backends_that_nothing_implements(self):
        accepted = extra_specs.TABLE['backend'].available
        self.assertIn('deadline', accepted)
        for name in reservation.Backend:
            for answer in (
                self.http.patch(
                    '/v1/reservations/' + ONE, json={'backend': name}
                ),
                self.http.post(
                    '/v1/reservations',
                    json={
                        'instance_uuid': ONE,
                        'runtime_us': 6000,
                        'backend': name,
                    },
                ),
                self.http.post(
                    '/v1/hosts/node1/profiles/error', json={'backends': [name]}
                ),
            ):
                if name in accepted:
                    self.assertNotEqual(400, answer.status_code)
                    continue
                self.problem(answer, 'backend', Code.BAD_REQUEST)
                for word in accepted:
                    self.assertIn(
                        "'%s'" % word, answer.json['errors'][0]['detail']
                    )

    def test_every_problem_is_told_at_once(self):
        answer = self.http.patch(
            '/v1/reservations/' + ONE,
            json={'runtime_us': -1, 'mode': 'x', 'colour': 'red', 'size': 1},
        )
        self.assertEqual(
            ['colour', 'mode', 'runtime_us', 'size'],
            sorted(
                one['detail'].split(':')[0] for one in answer.json['errors']
            ),
        )

    def test_only_json_is_read(self):
        for content_type in ('text/plain', 'application/xml', ''):
            answer = self.http.patch(
                '/v1/reservations/' + ONE,
                data=b'{"runtime_us": 6000}',
                content_type=content_type,
            )
            self.assertEqual(415, answer.status_code)
            self.assertEqual(
                Code.UNSUPPORTED_MEDIA_TYPE, answer.json['errors'][0]['code']
            )
        answer = self.http.patch(
            '/v1/reservations/' + ONE,
            data=b'{"runtime_us": 6000}',
            content_type='application/json; charset=utf-8',
        )
        self.assertEqual(202, answer.status_code)

    def test_a_long_body_is_not_read(self):
        body = json.dumps({'mode': 'x' * 70_000})
        for sent in (
            {'data': body},
            {
                'input_stream': io.BytesIO(body.encode()),
                'headers': {'Transfer-Encoding': 'chunked'},
                'environ_base': {'wsgi.input_terminated': True},
            },
        ):
            answer = self.http.patch(
                '/v1/reservations/' + ONE,
                content_type='application/json',
                **sent,
            )
            self.assertEqual(413, answer.status_code)
            self.assertEqual(Code.TOO_LARGE, answer.json['errors'][0]['code'])

    def test_unknown_paths_and_methods(self):
        answer = self.http.get('/v2/hosts')
        self.assertEqual(404, answer.status_code)
        self.assertEqual(Code.NOT_FOUND, answer.json['errors'][0]['code'])
        for method in ('PUT', 'POST', 'OPTIONS', 'DELETE', 'TRACE'):
            answer = self.http.open('/v1/hosts', method=method)
            self.assertEqual(405, answer.status_code)
            self.assertEqual(
                Code.METHOD_NOT_ALLOWED, answer.json['errors'][0]['code']
            )
            self.assertIn('GET', answer.headers['Allow'])

    def test_case_of_a_uuid_does_not_matter(self):
        self.assertEqual(
            200, self.http.get('/v1/reservations/' + ONE.upper()).status_code
        )
        self.assertEqual(
            1,
            len(
                self.http.get(
                    '/v1/reservations?instance_uuid=' + ONE.upper()
                ).json['reservations']
            ),
        )

    def test_a_job_ends_within_a_day(self):
        path = '/v1/hosts/node1/profiles/error'
        for body in (
            {
                'shares_pct': [10, 20],
                'seconds': 3600,
                'periods_us': [1_000 * number for number in range(1, 9)],
            },
            {'seconds': 3600, 'backends': ['deadline', 'cfs']},
            {'shares_pct': [0.5 + n for n in range(64)], 'seconds': 3600},
        ):
            self.problem(
                self.http.post(path, json=body), 'seconds', Code.BAD_REQUEST
            )
        self.assertEqual([], self.http.get('/v1/jobs').json['jobs'])
        self.assertEqual(
            202,
            self.http.post(
                path, json={'shares_pct': [10], 'seconds': 3600}
            ).status_code,
        )
