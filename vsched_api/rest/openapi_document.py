# SPDX-License-Identifier: Apache-2.0

"""The OpenAPI document, made from the routes, policies and schemas.

A summary is the first sentence of the handler's docstring, a description the
rest of it. Schemas with a title are listed once, under that name.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import http
import inspect
import re
import typing as ty

import flask
from werkzeug import routing

from vsched_api import nouns
from vsched_api import rest
from vsched_api.rest import documentation
from vsched_api.rest import microversion
from vsched_api.schemas import errors
from vsched_api.schemas import fields
from vsched_lib.contract import errors as contract_errors

Code = contract_errors.Code
Json = dict[str, ty.Any]

VERSION = '3.1.1'

#: Errors that any request may be answered with.
_COMMON: Mapping[int, Sequence[Code]] = {
    400: (Code.BAD_REQUEST,),
    401: (Code.UNAUTHENTICATED,),
    403: (Code.FORBIDDEN,),
    406: (Code.NOT_ACCEPTABLE,),
    408: (Code.REQUEST_TIMEOUT,),
    411: (Code.LENGTH_REQUIRED,),
    413: (Code.TOO_LARGE,),
    431: (Code.HEADERS_TOO_LARGE,),
    500: (Code.INTERNAL,),
    503: (
        Code.DATABASE_UNAVAILABLE,
        Code.IDENTITY_UNAVAILABLE,
        Code.REQUESTS_WAITING,
    ),
}
#: Those that a request with a path parameter, or with a body, may be.
_OF_PATHS: Mapping[int, Sequence[Code]] = {404: (Code.NOT_FOUND,)}
_OF_BODIES: Mapping[int, Sequence[Code]] = {
    415: (Code.UNSUPPORTED_MEDIA_TYPE,)
}

_HEADERS: Json = {
    documentation.ETAG: 'The version of the answer, for conditional requests.',
    documentation.LOCATION: 'Where the result is.',
    documentation.LINK: 'The links of the page.',
    'X-Openstack-Request-Id': 'The request, as in the log of the service.',
    microversion.HEADER: 'The microversion that the answer is of.',
    'Retry-After': 'After how many seconds to try again.',
}
_COMMON_HEADERS = ('X-Openstack-Request-Id', microversion.HEADER)

_CONDITIONS = {
    'If-Match': 'An ``ETag`` of an answer: nothing is changed unless it is '
    'still the one. ``*`` matches any.',
    'If-None-Match': 'The ``ETag`` of an earlier answer: 304 while it is '
    'still the one.',
}

_PATH_PARAMETERS: Mapping[str, fields.Schema] = {
    'name': fields.described(fields.NAME, 'Name of the host.'),
    'instance_uuid': fields.described(fields.UUID, 'UUID of the instance.'),
    'job_uuid': fields.described(fields.UUID, 'UUID of the job.'),
}

_VARIABLE = re.compile(r'<(?:\w+:)?(\w+)>')
_METHODS = ('GET', 'POST', 'PUT', 'PATCH', 'DELETE')


class Undocumented(Exception):
    """A route without documentation."""


@functools.cache
def document() -> Json:
    """Return the document of all nouns. It must not be changed."""
    app = flask.Flask(rest.__name__, static_folder=None)
    for module in nouns.modules(rest.__name__):
        app.register_blueprint(module.BLUEPRINT)
    return of(app)


def of(app: flask.Flask) -> Json:
    """Return the document of an application's routes.

    :raises Undocumented: naming a route without documentation.
    """
    components: dict[str, Json] = {}
    paths: dict[str, Json] = {}
    for rule, method, handler in routes(app):
        found = documentation.of(handler)
        if found is None:
            raise Undocumented('%s %s' % (method, rule.rule))
        paths.setdefault(path_of(rule), {})[method.lower()] = _operation(
            rule, handler, found, components
        )
    return {
        'openapi': VERSION,
        'info': {
            'title': 'vsched',
            'summary': 'CPU-time reservations of instances.',
            'description': 'What is reserved for each instance, what its '
            'host enforces, and what it got. Durations end in ``_us`` and are '
            'microseconds; ``_mcpu`` is milli-CPU: 1000 is one physical CPU; '
            '``_ppm`` is millionths. Times are in ISO 8601.',
            'version': microversion.MAX_VERSION,
            'license': {'name': 'Apache 2.0', 'identifier': 'Apache-2.0'},
        },
        'servers': [{'url': '/'}],
        'tags': [{'name': noun} for noun in nouns.NOUNS],
        'security': _security('token'),
        'paths': paths,
        'components': {
            'securitySchemes': {
                'token': {
                    'type': 'apiKey',
                    'in': 'header',
                    'name': 'X-Auth-Token',
                    'description': 'A token of keystone; none is needed with '
                    '``[api] auth_strategy = noauth``, and for operations '
                    'whose policy is for everyone.',
                },
                documentation.SCRAPE_TOKEN: {
                    'type': 'http',
                    'scheme': 'bearer',
                    'description': 'A token of the file in ``[metrics] '
                    'token_file``, for Prometheus.',
                },
            },
            'parameters': {
                'version': {
                    'name': microversion.HEADER,
                    'in': 'header',
                    'description': 'The microversion that the request is '
                    'written for, or ``latest``; without it the oldest.',
                    'schema': {'type': 'string'},
                    'example': '%s %s'
                    % (microversion.SERVICE_TYPE, microversion.MAX_VERSION),
                }
            },
            'responses': {
                str(status): _failure(status, codes, components)
                for status, codes in _COMMON.items()
            },
            'headers': {
                name: {
                    'description': text,
                    'schema': {
                        'type': 'integer'
                        if name == 'Retry-After'
                        else 'string'
                    },
                }
                for name, text in _HEADERS.items()
            },
            'schemas': dict(sorted(components.items())),
        },
    }


def routes(
    app: flask.Flask,
) -> Iterator[tuple[routing.Rule, str, ty.Callable[..., ty.Any]]]:
    """Yield rule, method and handler of each route, in order of the paths.

    Those of files for browsers are left out.
    """
    for rule in sorted(app.url_map.iter_rules(), key=lambda one: one.rule):
        handler = app.view_functions[rule.endpoint]
        for method in _METHODS:
            if method in (rule.methods or ()) and not (
                documentation.is_static(handler)
            ):
                yield rule, method, handler


def path_of(rule: routing.Rule) -> str:
    """Return the path of a rule, as OpenAPI and policies write it."""
    return _VARIABLE.sub(r'{\1}', rule.rule)


def _operation(
    rule: routing.Rule,
    handler: ty.Callable[..., ty.Any],
    found: documentation.Operation,
    components: dict[str, Json],
) -> Json:
    noun, name = rule.endpoint.split('.')
    summary, _, description = (inspect.getdoc(handler) or '').partition('\n\n')
    made: Json = {
        'operationId': '%s_%s' % (noun, name),
        'tags': [noun],
        'summary': ' '.join(summary.split()),
        'x-vsched-policy': found.rule,
        'parameters': list(_parameters(rule, found, components)),
    }
    if description:
        made['description'] = description.strip()
    if found.body is not None:
        made['requestBody'] = {
            'required': True,
            'content': {
                documentation.JSON: {
                    'schema': _reference(found.body, components)
                }
            },
        }
    if found.scheme is not None:
        made['security'] = _security('token', found.scheme)
    made['responses'] = _responses(rule, found, components)
    return made


def _security(*schemes: str) -> list[Json]:
    """Return that any of these is taken, and none where none is needed."""
    return [*({one: []} for one in schemes), {}]


def _parameters(
    rule: routing.Rule,
    found: documentation.Operation,
    components: dict[str, Json],
) -> Iterator[Json]:
    for name in _VARIABLE.findall(rule.rule):
        yield _parameter(name, 'path', _PATH_PARAMETERS[name], components)
    for name, schema in found.query['properties'].items():
        yield _parameter(name, 'query', schema, components)
    if found.conditional is not None:
        yield {
            'name': found.conditional,
            'in': 'header',
            'description': _CONDITIONS[found.conditional],
            'schema': {'type': 'string'},
        }
    yield {'$ref': '#/components/parameters/version'}


def _parameter(
    name: str, place: str, schema: fields.Schema, components: dict[str, Json]
) -> Json:
    schema = dict(schema)
    made: Json = {
        'name': name,
        'in': place,
        'description': schema.pop('description'),
        'schema': _reference(schema, components),
    }
    if place == 'path':
        made['required'] = True
    return made


def _responses(
    rule: routing.Rule,
    found: documentation.Operation,
    components: dict[str, Json],
) -> Json:
    made: Json = {str(found.status): _success(found, components)}
    for status in found.others:
        made[str(status)] = {
            'description': http.HTTPStatus(status).description
            or http.HTTPStatus(status).phrase,
            'headers': _headers(_COMMON_HEADERS),
        }
    for status, codes in sorted(errors_of(rule, found).items()):
        made[str(status)] = (
            {'$ref': '#/components/responses/%d' % status}
            if codes == _COMMON.get(status)
            else _failure(status, codes, components)
        )
    return made


def _failure(
    status: int, codes: Sequence[Code], components: dict[str, Json]
) -> Json:
    names = list(_COMMON_HEADERS)
    if status == http.HTTPStatus.SERVICE_UNAVAILABLE:
        names.append('Retry-After')
    return {
        'description': '%s: %s.'
        % (
            http.HTTPStatus(status).phrase,
            ', '.join('``%s``' % code for code in codes),
        ),
        'x-vsched-codes': list(map(str, codes)),
        'headers': _headers(names),
        'content': {
            documentation.JSON: {
                'schema': _reference(errors.ERRORS, components)
            }
        },
    }


def errors_of(
    rule: routing.Rule, found: documentation.Operation
) -> dict[int, tuple[Code, ...]]:
    """Return the codes that an operation may answer, by status."""
    kinds = [_COMMON]
    if _VARIABLE.search(rule.rule):
        kinds.append(_OF_PATHS)
    if found.body is not None:
        kinds.append(_OF_BODIES)
    made: dict[int, tuple[Code, ...]] = {}
    for kind in (*kinds, found.errors):
        for status, codes in kind.items():
            made[status] = (*made.get(status, ()), *codes)
    return made


def _success(
    found: documentation.Operation, components: dict[str, Json]
) -> Json:
    made: Json = {
        'description': http.HTTPStatus(found.status).description
        or http.HTTPStatus(found.status).phrase,
        'headers': _headers((*_COMMON_HEADERS, *found.headers)),
    }
    content = {
        kind: {'schema': _reference(schema, components)}
        for kind, schema in found.media.items()
    }
    if found.answer is not None:
        content = {
            documentation.JSON: {
                'schema': _reference(found.answer, components)
            },
            **content,
        }
    if content:
        made['content'] = content
    return made


def _headers(names: Sequence[str]) -> Json:
    return {name: {'$ref': '#/components/headers/' + name} for name in names}


def _reference(schema: ty.Any, components: dict[str, Json]) -> ty.Any:
    """Return a schema in which those with a title are references.

    :raises ValueError: when two schemas have one title.
    """
    if isinstance(schema, list):
        return [_reference(one, components) for one in schema]
    if not isinstance(schema, dict):
        return schema
    title = schema.get('title')
    made = {
        key: {name: _reference(one, components) for name, one in value.items()}
        if key == 'properties'
        else _reference(value, components)
        for key, value in schema.items()
    }
    if not isinstance(title, str):
        return made
    if components.setdefault(title, made) != made:
        raise ValueError('two schemas are called %s' % title)
    return {'$ref': '#/components/schemas/' + title}
