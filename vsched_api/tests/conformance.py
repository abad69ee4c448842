# SPDX-License-Identifier: Apache-2.0

"""Compare every answer of an application with its OpenAPI document."""

from collections.abc import Callable
from collections.abc import Iterable
import functools
import gzip
import json
import re
import typing as ty

import flask
import jsonschema
from werkzeug import datastructures
from werkzeug import exceptions
from werkzeug import http
from werkzeug import routing

from vsched_api import app as application
from vsched_api.rest import documentation
from vsched_api.rest import microversion
from vsched_api.rest import openapi_document
from vsched_api.schemas import errors

FORMATS = jsonschema.FormatChecker(formats=('uuid',))

_TIME = re.compile(
    r'[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]'
    r'\.[0-9]{6}Z'
)


def _is_time(value: object) -> bool:
    return not isinstance(value, str) or _TIME.fullmatch(value) is not None


FORMATS.checks('date-time')(_is_time)


def documented(path: str, method: str, status: int) -> dict[str, ty.Any]:
    """Return what the document has of an answer.

    :param path: as the document has it.
    :raises AssertionError: when it has no such answer.
    """
    document = openapi_document.document()
    found: dict[str, ty.Any] | None = document['paths'][path][method.lower()][
        'responses'
    ].get(str(status))
    if found is None:
        raise AssertionError(
            '%s %s: %d is not documented' % (method, path, status)
        )
    if '$ref' in found:
        found = document['components']['responses'][
            found['$ref'].rpartition('/')[2]
        ]
    return ty.cast(dict[str, ty.Any], found)


@functools.cache
def validator(
    path: str, method: str, status: int, kind: str
) -> jsonschema.Draft202012Validator | None:
    """Return what validates a body; None when there should be none.

    :param path: as the document has it.
    :param kind: the media type.
    :raises AssertionError: when the document has no such answer.
    """
    document = openapi_document.document()
    where = '%s %s: %d' % (method, path, status)
    content = documented(path, method, status).get('content')
    if content is None:
        return None
    if kind not in content:
        raise AssertionError('%s: %s is not documented' % (where, kind))
    return jsonschema.Draft202012Validator(
        {**content[kind]['schema'], 'components': document['components']},
        format_checker=FORMATS,
    )


@functools.cache
def _errors() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(errors.ERRORS)


class Checked:
    """WSGI middleware that raises on an answer that is not documented.

    :param served: the application inside.
    """

    def __init__(self, inner: ty.Any, served: flask.Flask) -> None:
        self._inner = inner
        self._served = served

    def __call__(
        self, environ: dict[str, ty.Any], start_response: ty.Any
    ) -> Iterable[bytes]:
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def start(
            status: str, headers: list[tuple[str, str]], *more: ty.Any
        ) -> ty.Any:
            begun.append((status, headers))
            return start_response(status, headers, *more)

        # The request's own: the application may change it.
        method, path = environ['REQUEST_METHOD'], environ['PATH_INFO']
        found = self._inner(environ, start)
        try:
            body = b''.join(found)
        finally:
            if hasattr(found, 'close'):
                found.close()
        status, headers = begun[-1]
        # What browsers ask before is answered without the application.
        if path != application.LIVENESS and method != 'OPTIONS':
            self._check(
                method,
                path.encode('latin-1').decode('utf-8', 'replace'),
                int(status.split()[0]),
                datastructures.Headers(headers),
                body,
            )
        return [body]

    def _check(
        self,
        method: str,
        path: str,
        status: int,
        headers: datastructures.Headers,
        body: bytes,
    ) -> None:
        where = '%s %s: %d' % (method, path, status)
        if 'X-Openstack-Request-Id' not in headers:
            raise AssertionError('%s has no X-Openstack-Request-Id' % where)
        if self._is_file(method, path):
            return
        kind = http.parse_options_header(headers.get('Content-Type'))[0]
        known = self._known(method, path)
        if known is None:
            if not 400 <= status < 600:
                raise AssertionError('%s: no such route' % where)
            checker: jsonschema.Draft202012Validator | None = _errors()
        else:
            checker = validator(*known, status, kind)
        if method == 'HEAD':
            return
        if checker is None:
            if body:
                raise AssertionError('%s has a body' % where)
            return
        if headers.get('Content-Encoding') == 'gzip':
            body = gzip.decompress(body)
        value: ty.Any = body.decode('utf-8')
        if kind == documentation.JSON:
            value = json.loads(body, parse_constant=_no_constant)
        for problem in checker.iter_errors(value):
            raise AssertionError('%s: %s' % (where, problem))
        if known is not None and status >= 400:
            codes = documented(*known, status)['x-vsched-codes']
            for one in value['errors']:
                if one['code'] not in codes:
                    raise AssertionError(
                        '%s: %s is not documented' % (where, one['code'])
                    )
        if status < 400 and microversion.HEADER not in headers:
            raise AssertionError('%s names no version' % where)

    def _handler(
        self, method: str, path: str
    ) -> tuple[routing.Rule, Callable[..., ty.Any]] | None:
        """Return rule and handler of a request; None where there is none."""
        try:
            rule, _ = self._served.url_map.bind('').match(
                path, method, return_rule=True
            )
        except exceptions.HTTPException:
            return None
        return rule, self._served.view_functions[rule.endpoint]

    def _is_file(self, method: str, path: str) -> bool:
        found = self._handler(method, path)
        return found is not None and documentation.is_static(found[1])

    def _known(self, method: str, path: str) -> tuple[str, str] | None:
        """Return path and method as documented; None for another request."""
        method = 'GET' if method == 'HEAD' else method
        found = self._handler(method, path)
        # Tests have routes of their own.
        if found is None or documentation.of(found[1]) is None:
            return None
        return openapi_document.path_of(found[0]), method


def _no_constant(word: str) -> ty.NoReturn:
    raise AssertionError('%s is not JSON' % word)


def check(served: flask.Flask) -> flask.Flask:
    """Have every answer of an application checked from now on."""
    served.wsgi_app = Checked(  # type: ignore[method-assign]
        served.wsgi_app, served
    )
    return served
