# SPDX-License-Identifier: Apache-2.0

"""Errors made from answers, whatever these are."""

from oslotest import base
import requests

from vsched_client import errors


def response(status, content=b'', **headers):
    """Return an answer."""
    made = requests.Response()
    made.status_code = status
    made.reason = 'Some Reason'
    made._content = content
    made.headers.update(
        {name.replace('_', '-'): text for name, text in headers.items()}
    )
    return made


def body(*entries):
    """Return the body of an answer with errors."""
    return requests.compat.json.dumps({'errors': list(entries)}).encode()


class FromResponseTestCase(base.BaseTestCase):
    def test_each_problem(self):
        found = errors.from_response(
            response(
                400,
                body(
                    {
                        'status': 400,
                        'title': 'Bad Request',
                        'detail': 'runtime_us: 0 is too little',
                        'code': 'vsched.request.invalid',
                        'request_id': 'req-1',
                    },
                    {'detail': 'mode: x', 'code': 'c', 'title': 'T'},
                ),
            )
        )
        self.assertIsInstance(found, errors.BadRequest)
        self.assertEqual(400, found.status)
        self.assertEqual('vsched.request.invalid', found.code)
        self.assertEqual('req-1', found.request_id)
        self.assertEqual(2, len(found.problems))
        self.assertEqual(
            'runtime_us: 0 is too little; mode: x (HTTP 400, '
            'vsched.request.invalid, req-1)',
            str(found),
        )

    def test_classes(self):
        for status, kind in (
            (401, errors.Unauthorized),
            (403, errors.Forbidden),
            (404, errors.NotFound),
            (409, errors.Conflict),
            (412, errors.Outdated),
            (418, errors.ApiError),
            (500, errors.ServerError),
            (501, errors.ServerError),
            (503, errors.Unavailable),
        ):
            found = errors.from_response(response(status))
            self.assertIs(kind, type(found), status)
            self.assertEqual('Some Reason', found.detail)

    def test_another_generation(self):
        found = errors.from_response(
            response(
                409, body({'code': errors.GENERATION_CONFLICT, 'detail': 'x'})
            )
        )
        self.assertIsInstance(found, errors.Outdated)

    def test_what_the_api_does_not_answer(self):
        for content in (
            b'',
            b'<html>',
            b'[]',
            b'{}',
            b'{"errors": []}',
            b'{"errors": 7}',
            b'{"errors": ["x"]}',
            b'{"errors": {"code": "x"}}',
            b'\xff\xfe',
        ):
            found = errors.from_response(
                response(502, content, X_OpenStack_Request_Id='req-2')
            )
            self.assertEqual('Some Reason', found.detail, content)
            self.assertEqual('req-2', found.request_id)

    def test_bounds(self):
        found = errors.from_response(
            response(400, body(*[{'detail': 'x' * 10_000}] * 1000))
        )
        self.assertEqual(100, len(found.problems))
        self.assertEqual(2000, len(found.problems[0].detail))

    def test_an_answer_without_a_reason(self):
        made = response(599)
        made.reason = None
        self.assertIn('no text', errors.from_response(made).detail)
