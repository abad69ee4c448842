# SPDX-License-Identifier: Apache-2.0

"""Which error ends a command with which code."""

import json

from oslotest import base
import requests

from vsched_api.rest import openapi_document
from vsched_client import errors
from vsched_client.osc import exit_codes
from vsched_lib.contract import errors as contract

ExitCode = exit_codes.ExitCode

#: By the class of an error, the code of its command.
_ERRORS = {
    errors.ClientError: ExitCode.ERROR,
    errors.NoAnswer: ExitCode.ERROR,
    errors.MalformedAnswer: ExitCode.ERROR,
    errors.TimedOut: ExitCode.TIMED_OUT,
    errors.Superseded: ExitCode.CHANGED,
    errors.NovaError: ExitCode.ERROR,
    errors.ApiError: ExitCode.ERROR,
    errors.BadRequest: ExitCode.ERROR,
    errors.Unauthorized: ExitCode.ERROR,
    errors.Forbidden: ExitCode.ERROR,
    errors.NotFound: ExitCode.ERROR,
    errors.Conflict: ExitCode.ERROR,
    errors.Outdated: ExitCode.CHANGED,
    errors.ServerError: ExitCode.ERROR,
    errors.Unavailable: ExitCode.ERROR,
    exit_codes.UsageError: ExitCode.USAGE,
}

#: Codes of answers with the status 409: whether a host would not do it.
_CONFLICTS = {
    'vsched.backend.unavailable': ExitCode.REFUSED,
    'vsched.balloon.does_not_fit': ExitCode.REFUSED,
    'vsched.balloon.dry_run': ExitCode.REFUSED,
    'vsched.balloon.excluded': ExitCode.REFUSED,
    'vsched.balloon.guest_agent_unavailable': ExitCode.REFUSED,
    'vsched.balloon.out_of_bounds': ExitCode.REFUSED,
    'vsched.balloon.not_found': ExitCode.ERROR,
    'vsched.host.in_use': ExitCode.ERROR,
    'vsched.instance.absent': ExitCode.ERROR,
    'vsched.job.changing': ExitCode.ERROR,
    'vsched.job.exists': ExitCode.ERROR,
    'vsched.job.finished': ExitCode.ERROR,
    'vsched.reservation.changing': ExitCode.ERROR,
    'vsched.reservation.exists': ExitCode.ERROR,
    errors.GENERATION_CONFLICT: ExitCode.CHANGED,
}


def _classes(kind):
    yield kind
    for one in kind.__subclasses__():
        yield from _classes(one)


class ExitCodesTestCase(base.BaseTestCase):
    def test_each_error(self):
        self.assertEqual(set(_ERRORS), set(_classes(errors.ClientError)))
        for kind, code in _ERRORS.items():
            problem = (
                kind(400, [errors.Problem('vsched.some.code', 'detail')])
                if issubclass(kind, errors.ApiError)
                else kind('detail')
            )
            self.assertEqual(code, exit_codes.of(problem), kind)

    def test_each_conflict(self):
        self.assertEqual(set(_CONFLICTS), _documented())
        for code, expected in _CONFLICTS.items():
            answer = requests.Response()
            answer.status_code = 409
            answer._content = json.dumps(
                {'errors': [{'code': code, 'detail': 'detail'}]}
            ).encode()
            problem = errors.from_response(answer)
            self.assertEqual(code, problem.code)
            self.assertEqual(expected, exit_codes.of(problem), code)

    def test_refusals_are_codes(self):
        for text in exit_codes._REFUSALS:
            self.assertTrue(
                [one for one in contract.Code if one.startswith(text)], text
            )


def _documented():
    """Return the codes of all answers with the status 409."""
    document = openapi_document.document()
    found = (
        operation['responses'].get('409', {})
        for path in document['paths'].values()
        for operation in path.values()
    )
    return {code for one in found for code in one.get('x-vsched-codes', ())}
