# SPDX-License-Identifier: Apache-2.0

"""What a route takes and answers, for the OpenAPI document.

Each handler is decorated with :func:`operation` below its route, or with
:func:`static`. A handler without either, and one that enforces another policy
or checks another schema than it names, fails the tests.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import types
import typing as ty

from vsched_api.schemas import fields
from vsched_lib.contract import errors

Code = errors.Code

_ATTRIBUTE = 'vsched_operation'
_STATIC = 'vsched_static'

NOTHING: Mapping[ty.Any, ty.Any] = types.MappingProxyType({})

#: The media type of every answer that is not listed otherwise.
JSON = 'application/json'
CSV = 'text/csv'

#: The security scheme of Prometheus.
SCRAPE_TOKEN = 'scrapeToken'

#: Headers of answers, beside those that all have.
ETAG = 'ETag'
LOCATION = 'Location'
LINK = 'Link'


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """What is documented of a route.

    :param rule: the policy.
    :param answer: the schema of the JSON body; None without one.
    :param query: the schema of the query.
    :param body: the schema of the request's body; None without one.
    :param status: of a successful answer.
    :param others: further successful statuses that have no body.
    :param media: further media types of a successful answer, with the schema
        of each.
    :param headers: of a successful answer.
    :param conditional: the request header that makes it conditional:
        ``If-Match`` or ``If-None-Match``.
    :param errors: by status, the codes that are its own.
    :param scheme: what it takes instead of a token of keystone: a security
        scheme of the document; None for nothing.
    """

    rule: str
    answer: fields.Schema | None
    query: fields.Schema
    body: fields.Schema | None
    status: int
    others: Sequence[int]
    media: Mapping[str, fields.Schema]
    headers: Sequence[str]
    conditional: str | None
    errors: Mapping[int, Sequence[Code]]
    scheme: str | None = None


F = ty.TypeVar('F', bound=Callable[..., ty.Any])


def operation(
    rule: str,
    answer: fields.Schema | None,
    *,
    query: fields.Schema = fields.NOTHING,
    body: fields.Schema | None = None,
    status: int = 200,
    others: Sequence[int] = (),
    media: Mapping[str, fields.Schema] = NOTHING,
    headers: Sequence[str] = (),
    conditional: str | None = None,
    errors: Mapping[int, Sequence[Code]] = NOTHING,
    scheme: str | None = None,
) -> Callable[[F], F]:
    """Document a handler; the parameters are those of :class:`Operation`."""
    found = Operation(
        rule,
        answer,
        query,
        body,
        status,
        others,
        media,
        headers,
        conditional,
        errors,
        scheme,
    )

    def decorate(handler: F) -> F:
        setattr(handler, _ATTRIBUTE, found)
        return handler

    return decorate


def of(handler: Callable[..., ty.Any]) -> Operation | None:
    """Return what is documented of a handler; None without it."""
    return getattr(handler, _ATTRIBUTE, None)


def static(handler: F) -> F:
    """Leave a handler out of the document: it answers files for browsers."""
    setattr(handler, _STATIC, True)
    return handler


def is_static(handler: Callable[..., ty.Any]) -> bool:
    """Return whether a handler answers files for browsers."""
    return getattr(handler, _STATIC, False)
