# SPDX-License-Identifier: Apache-2.0

"""What a request gets when it fails.

Every error has the same form: ``{"errors": [{"status", "title", "detail",
"code", "request_id"}]}``, one entry for each problem found. ``code`` is one
of :class:`vsched_lib.contract.errors.Code`; clients compare that, and show
``detail`` to people.
"""

from collections.abc import Sequence
import http
import typing as ty

import flask
from oslo_log import log as logging
from werkzeug import exceptions as http_exceptions

from vsched_api.db import errors as db_errors
from vsched_api.operations import errors as operation_errors
from vsched_api.rest import services
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)

Code = errors.Code

ENVIRON_REQUEST_ID = 'openstack.request_id'

# What Flask and werkzeug find out by themselves.
_HTTP_CODES = {
    400: Code.BAD_REQUEST,
    401: Code.UNAUTHENTICATED,
    403: Code.FORBIDDEN,
    404: Code.NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    406: Code.NOT_ACCEPTABLE,
    413: Code.TOO_LARGE,
    415: Code.UNSUPPORTED_MEDIA_TYPE,
}


class InvalidRequest(errors.VschedError):
    """A body or query that breaks its schema.

    :ivar problems: each starts with the name of the field.
    """

    code = Code.BAD_REQUEST

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__('; '.join(problems))
        self.problems = tuple(problems)


class Unauthenticated(errors.VschedError):
    """The request does not say who it is from, or nobody confirms it."""

    code = Code.UNAUTHENTICATED


class IdentityUnavailable(errors.VschedError):
    """The token cannot be checked: keystone does not answer."""

    code = Code.IDENTITY_UNAVAILABLE


class Forbidden(errors.VschedError):
    """A policy does not let this one do it."""

    code = Code.FORBIDDEN


_STATUS: dict[type[errors.VschedError], int] = {
    InvalidRequest: 400,
    operation_errors.Invalid: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    operation_errors.NotFound: 404,
    operation_errors.Conflict: 409,
    operation_errors.Outdated: 409,
    operation_errors.NotInstalled: 501,
    operation_errors.Away: 503,
    IdentityUnavailable: 503,
    db_errors.DatabaseUnavailable: 503,
}


def register(app: flask.Flask) -> None:
    """Let an application answer errors in this form."""
    for kind in _STATUS:
        app.register_error_handler(kind, _named)
    app.register_error_handler(db_errors.UnstorableValue, _unstorable)
    app.register_error_handler(http_exceptions.HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)


def response(
    status: int, code: str, details: Sequence[str], **more: ty.Any
) -> flask.Response:
    """An error.

    :param details: one sentence for each problem.
    :param more: further keys of each entry.
    """
    answer = flask.jsonify(
        document(
            status,
            code,
            details,
            flask.request.environ.get(ENVIRON_REQUEST_ID),
            **more,
        )
    )
    answer.status_code = status
    return answer


def document(
    status: int,
    code: str,
    details: Sequence[str],
    request_id: str | None,
    **more: ty.Any,
) -> dict[str, ty.Any]:
    """The body of an error, ready for JSON.

    :param details: one sentence for each problem.
    :param more: further keys of each entry.
    """
    return {
        'errors': [
            {
                'status': status,
                'title': title(status),
                'detail': detail,
                'code': code,
                'request_id': request_id,
                **more,
            }
            for detail in details
        ]
    }


def title(status: int) -> str:
    """The standard's words for a status."""
    return http.HTTPStatus(status).phrase


def _named(error: errors.VschedError) -> flask.Response:
    status = next(
        status for kind, status in _STATUS.items() if isinstance(error, kind)
    )
    if isinstance(error, operation_errors.Outdated) and (
        'If-Match' in flask.request.headers
    ):
        status = http.HTTPStatus.PRECONDITION_FAILED
    answer = response(
        status, error.code, getattr(error, 'problems', (error.detail,))
    )
    if status == http.HTTPStatus.SERVICE_UNAVAILABLE:
        answer.headers['Retry-After'] = str(
            services.current().conf.api.retry_after_s
        )
    return answer


def _unstorable(error: db_errors.UnstorableValue) -> flask.Response:
    LOG.warning(
        'A request got to the database with a value that it does not take: %s',
        error,
    )
    return response(
        400, Code.BAD_REQUEST, ['a value is not one that can be stored']
    )


def _http(error: http_exceptions.HTTPException) -> ty.Any:
    if error.code is None or error.code < 400:
        # A redirect, which werkzeug raises as well.
        return error
    answer = response(
        error.code,
        _HTTP_CODES.get(error.code, Code.UNDEFINED),
        [error.description or error.name],
    )
    for name, value in error.get_headers():
        if name not in ('Content-Type', 'Content-Length'):
            answer.headers[name] = value
    return answer


def _unexpected(error: Exception) -> flask.Response:
    LOG.error(
        '%s %s failed',
        flask.request.method,
        flask.request.path,
        exc_info=error,
    )
    return response(
        500,
        Code.INTERNAL,
        ['the request failed for a reason that is in the log of the service'],
    )
