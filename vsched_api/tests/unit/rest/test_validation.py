# SPDX-License-Identifier: Apache-2.0

"""What it costs to refuse a request."""

import json

from vsched_api.rest import errors
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.tests import base

_MOST = 64
_SCHEMA = fields.closed(
    {'some': {'type': 'array', 'maxItems': _MOST, 'uniqueItems': True}}
)


class _Item:
    """Counts how often it is compared; it cannot be sorted."""

    compared = 0

    def __eq__(self, other):
        _Item.compared += 1
        return self is other

    def __hash__(self):
        return id(self)


class TestCosts(base.TestCase):
    """A body of 64 KiB has thousands of items, and as many problems."""

    def refusal(self, count):
        _Item.compared = 0
        return self.assertRaises(
            errors.InvalidRequest,
            validation._check,
            _SCHEMA,
            {'some': [_Item() for _ in range(count)]},
            [],
        )

    def test_too_many_items_are_not_compared(self):
        self.assertIn('some: ', str(self.refusal(_MOST + 1)))
        self.assertEqual(0, _Item.compared)

    def test_items_are_unique(self):
        validation._check(
            _SCHEMA, {'some': [_Item() for _ in range(_MOST)]}, []
        )
        self.assertGreater(_Item.compared, 0)
        problem = self.assertRaises(
            errors.InvalidRequest,
            validation._check,
            _SCHEMA,
            {'some': [1, 'a', 1]},
            [],
        )
        self.assertIn('non-unique', str(problem))

    def test_an_answer_tells_some_problems_only(self):
        for body in (
            {'name%d' % number: 1 for number in range(3_000)},
            {'shares_pct': ['x'] * 10_000},
        ):
            answer = self.client().post(
                '/v1/hosts/node1/profiles/error',
                data=json.dumps(body),
                content_type='application/json',
            )
            self.assertEqual(400, answer.status_code)
            found = answer.json['errors']
            self.assertEqual(validation.MAX_PROBLEMS + 1, len(found))
            self.assertEqual(
                'body: there are more than %d problems'
                % validation.MAX_PROBLEMS,
                found[-1]['detail'],
            )
            self.assertLess(len(answer.data), 20_000)

    def test_a_name_that_is_repeated_behind_many(self):
        body = '{%s, "last": 1, "last": 2}' % (
            ', '.join('"n%d": 1' % number for number in range(4_000))
        )
        answer = self.client().post(
            '/v1/hosts/node1/profiles/error',
            data=body,
            content_type='application/json',
        )
        self.assertEqual(400, answer.status_code)
        self.assertIn(
            'last is given more than once', answer.json['errors'][0]['detail']
        )
