# SPDX-License-Identifier: Apache-2.0

"""What may go wrong between the client and the API.

ClientError
 +-- NoAnswer               no endpoint, no connection, no token
 +-- MalformedAnswer        an answer that the API does not give
 +-- TimedOut               nothing has answered in time
 +-- Superseded             another request changed it meanwhile
 +-- NovaError              Nova does not answer, or rejects a request
 +-- ApiError               the API answered with errors
      +-- BadRequest        400
      +-- Unauthorized      401
      +-- Forbidden         403
      +-- NotFound          404
      +-- Conflict          409
      |    +-- Outdated     409 or 412: another generation is there
      +-- ServerError       5xx
           +-- Unavailable  503
"""

from collections.abc import Sequence
import dataclasses
import typing as ty

import requests

#: The longest text of an answer that is kept, in characters.
_MAX_CHARS = 2000
#: The most problems of one answer that are kept.
_MAX_PROBLEMS = 100

GENERATION_CONFLICT = 'vsched.request.generation_conflict'
_UNDEFINED = 'vsched.undefined_code'


class ClientError(Exception):
    """Base of all errors of this package."""


class NoAnswer(ClientError):
    """A request got no answer; the text has the reason."""


class MalformedAnswer(ClientError):
    """An answer has not the form that the API describes."""


class TimedOut(ClientError):
    """What was waited for has not happened in time.

    :ivar last: what was read last.
    """

    def __init__(self, detail: str, last: ty.Any = None) -> None:
        super().__init__(detail)
        self.last = last


class Superseded(ClientError):
    """Another request has changed what was waited for.

    :ivar last: what was read last.
    """

    def __init__(self, detail: str, last: ty.Any = None) -> None:
        super().__init__(detail)
        self.last = last


class NovaError(ClientError):
    """Nova does not answer, or rejects a request; the text has the reason."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One entry of an answer's ``errors``.

    :param code: stable; compare this one.
    :param detail: for people.
    """

    code: str
    detail: str
    title: str = ''


class ApiError(ClientError):
    """The API answered a request with errors.

    :ivar status: of HTTP.
    :ivar problems: one at least.
    :ivar request_id: by which the log of the service names the request.
    """

    def __init__(
        self,
        status: int,
        problems: Sequence[Problem],
        request_id: str | None = None,
    ) -> None:
        self.status = status
        self.problems = tuple(problems)
        self.request_id = request_id
        super().__init__(
            '%s (HTTP %d, %s%s)'
            % (
                self.detail,
                status,
                self.code,
                ', %s' % request_id if request_id else '',
            )
        )

    @property
    def code(self) -> str:
        """The code of the first problem."""
        return self.problems[0].code

    @property
    def detail(self) -> str:
        """The details of all problems."""
        return '; '.join(one.detail for one in self.problems)


class BadRequest(ApiError):
    """The request is invalid."""


class Unauthorized(ApiError):
    """A valid token is needed."""


class Forbidden(ApiError):
    """A policy does not allow it."""


class NotFound(ApiError):
    """There is no such resource."""


class Conflict(ApiError):
    """The state of the resource does not allow it."""


class Outdated(Conflict):
    """The request is based on a generation that is not the newest."""


class ServerError(ApiError):
    """The service failed."""


class Unavailable(ServerError):
    """The service cannot answer now."""


_CLASSES: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Outdated,
    503: Unavailable,
}


def from_response(response: requests.Response) -> ApiError:
    """Return the error that an answer is.

    :param response: with a status of 400 or more; its body may be anything.
    """
    status = response.status_code
    problems, request_id = _problems(response)
    kind = _CLASSES.get(status, ServerError if status >= 500 else ApiError)
    if kind is Conflict and problems[0].code == GENERATION_CONFLICT:
        kind = Outdated
    return kind(
        status,
        problems,
        request_id or response.headers.get('X-OpenStack-Request-Id'),
    )


def _problems(response: requests.Response) -> tuple[list[Problem], str | None]:
    try:
        entries = response.json()['errors']
        found = [
            Problem(
                _text(one.get('code')) or _UNDEFINED,
                _text(one.get('detail')) or _text(one.get('title')),
                _text(one.get('title')),
            )
            for one in entries[:_MAX_PROBLEMS]
        ]
        request_id = _text(entries[0].get('request_id'))
    except (ValueError, LookupError, TypeError, AttributeError):
        # A proxy answered, or something else than the API.
        found, request_id = [], ''
    if not found:
        found = [
            Problem(
                _UNDEFINED,
                _text(response.reason)
                or 'the answer has no text that explains it',
            )
        ]
    return found, request_id or None


def _text(value: object) -> str:
    return value[:_MAX_CHARS] if isinstance(value, str) else ''
