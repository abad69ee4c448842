# SPDX-License-Identifier: Apache-2.0

"""Requests that are nearly right, made from the routes and their schemas.

What the routes of a noun take is what their documentation says. A body or a
query is first made valid, then most often spoiled in one or two places.
"""

import copy
import dataclasses
import json
import random
import typing as ty
import urllib.parse
import uuid

import flask
import flask.testing
import werkzeug.routing

from vsched_api.rest import documentation
from vsched_api.rest import openapi_document

_METHODS = ('GET', 'POST', 'PUT', 'PATCH', 'DELETE')

#: Text and numbers that parsers, databases and arithmetic trip over.
ODD: tuple[ty.Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    10**30,
    1e308,
    -0.0,
    0.1,
    '',
    ' ',
    'a',
    'A' * 300,
    'x' * 70_000,
    '\x00',
    'a\x00b',
    '\ud800',
    '\u202e',
    '\U0010ffff',
    'null',
    '0',
    '-1',
    '1e999',
    'NaN',
    "' OR 1=1 --",
    '%00',
    '../../etc/passwd',
    '${x}',
    '{{7*7}}',
    '9999-12-31T23:59:59Z',
    '0001-01-01T00:00:00Z',
    '2026-02-30T00:00:00Z',
    [],
    {},
    [[]],
    [None],
    {'': {}},
    {'a': [{'b': {}}]},
)


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One request.

    :param query: one character for each byte.
    :param body: None for none.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes | None


class Fuzzer:
    """Makes requests for all routes of an application.

    :param application: whose routes.
    :param seed: the same one makes the same requests.
    :param known: values of path parameters and fields that exist, by name.
    """

    def __init__(
        self,
        application: flask.Flask,
        seed: int,
        known: ty.Mapping[str, ty.Sequence[str]],
    ) -> None:
        self._chance = random.Random(seed)
        self._known = known
        self._schemas = _schemas(application)
        self._rules = [
            rule
            for rule in application.url_map.iter_rules()
            if rule.endpoint != 'static'
        ]

    def request(self) -> Request:
        """The next one."""
        chance = self._chance
        rule = chance.choice(self._rules)
        method = chance.choice(sorted((rule.methods or set()) & set(_METHODS)))
        if chance.random() < 0.03:
            method = chance.choice(_METHODS)
        schemas = self._schemas[rule.endpoint.split('.')[0]]
        headers = {}
        if chance.random() < 0.2:
            headers['OpenStack-API-Version'] = chance.choice(
                (
                    'vsched 1.0',
                    'vsched latest',
                    'vsched 99999999999999.1',
                    'vsched',
                    'x' * 5000,
                    'vsched 1.\u0661',
                )
            )
        if chance.random() < 0.1:
            headers[
                chance.choice(
                    (
                        'If-None-Match',
                        'If-Match',
                        'X-Openstack-Request-Id',
                        'Accept',
                        'Range',
                    )
                )
            ] = chance.choice(('"x"', 'W/"1"', '*', '\u00e9', 'a' * 3000, '0'))
        body = None
        if method in ('POST', 'PUT', 'PATCH') or chance.random() < 0.02:
            body = self._body(schemas)
            headers['Content-Type'] = 'application/json'
            if chance.random() < 0.03:
                headers['Content-Type'] = chance.choice(
                    (
                        'text/plain',
                        '',
                        'application/json; charset=utf-7',
                        'multipart/form-data',
                    )
                )
        query = self._query(schemas)
        if chance.random() < 0.02:
            # Bytes that are no text, as a server hands them over.
            query += chance.choice(('\xff', '&a=\xed\xa0\x80', '&\xe9=1'))
        return Request(method, self._path(rule), query, headers, body)

    def _path(self, rule: werkzeug.routing.Rule) -> str:
        path = rule.rule
        for name in rule.arguments:
            values = list(self._known.get(name, ()))
            if not values or self._chance.random() < 0.4:
                values = [
                    str(uuid.UUID(int=self._chance.getrandbits(128))),
                    *(one for one in ODD if isinstance(one, str)),
                ]
            value = urllib.parse.quote(
                self._chance.choice(values), safe='', errors='surrogatepass'
            )
            for form in ('<%s>', '<path:%s>', '<string:%s>', '<int:%s>'):
                path = path.replace(form % name, value)
        return path

    def _query(self, schemas: ty.Sequence[dict[str, ty.Any]]) -> str:
        if self._chance.random() < 0.5:
            return ''
        schema = self._chance.choice(schemas)
        pairs = []
        for name in self._chance.sample(
            sorted(schema['properties']),
            min(len(schema['properties']), self._chance.randint(0, 3)),
        ):
            value = self._value(name, schema['properties'][name])
            if self._chance.random() < 0.4:
                value = self._chance.choice(ODD)
            for one in value if isinstance(value, list) else [value]:
                pairs.append(
                    (name, one if isinstance(one, str) else json.dumps(one))
                )
        return urllib.parse.urlencode(pairs, errors='surrogatepass')

    def _body(self, schemas: ty.Sequence[dict[str, ty.Any]]) -> bytes:
        chance = self._chance
        if chance.random() < 0.05:
            return chance.choice(
                (
                    b'',
                    b'{',
                    b'\xff\xfe',
                    b'[' * 100_000,
                    b'NaN',
                    b'{"a": 1, "a": 2}',
                    b'{"a": ' * 50_000,
                    b'1e999',
                    b'"\\ud800"',
                    b'9' * 10_000,
                )
            )
        value = self._value('', chance.choice(schemas))
        for _ in range(chance.choice((0, 1, 1, 2))):
            value = self._spoiled(value)
        return json.dumps(value).encode('ascii')

    def _spoiled(self, value: ty.Any) -> ty.Any:
        chance = self._chance
        if isinstance(value, dict) and value and chance.random() < 0.85:
            value = dict(value)
            name = chance.choice(sorted(value))
            act = chance.random()
            if act < 0.15:
                del value[name]
            elif act < 0.25:
                value[str(chance.choice(ODD))[:50]] = chance.choice(ODD)
            else:
                value[name] = self._spoiled(value[name])
            return value
        if isinstance(value, list) and value and chance.random() < 0.5:
            return [self._spoiled(value[0]), *value[1:]]
        return copy.deepcopy(chance.choice(ODD))

    def _value(self, name: str, schema: ty.Mapping[str, ty.Any]) -> ty.Any:
        """A value that the schema takes."""
        chance = self._chance
        if name in self._known and chance.random() < 0.8:
            one = chance.choice(self._known[name])
            return [one] if schema.get('type') == 'array' else one
        if 'enum' in schema:
            return chance.choice(schema['enum'])
        kinds = schema.get('type', 'object')
        kind = chance.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == 'object':
            return self._object(schema)
        if kind == 'array':
            low = schema.get('minItems', 0)
            return [
                self._value(name, schema.get('items', {}))
                for _ in range(low + chance.randint(0, 2))
            ]
        if kind in ('integer', 'number'):
            low = schema.get('minimum', -1000)
            return chance.choice(
                (
                    low,
                    low + 1,
                    min(
                        schema.get('maximum', 10**6),
                        low + chance.randint(0, 10**5),
                    ),
                    schema.get('maximum', 10**6),
                )
            )
        if kind == 'boolean':
            return chance.random() < 0.5
        if kind == 'null':
            return None
        if schema.get('format') == 'uuid':
            return str(uuid.UUID(int=chance.getrandbits(128), version=4))
        if schema.get('format') == 'date-time':
            return '20%02d-0%d-11T12:00:00Z' % (
                chance.randint(20, 40),
                chance.randint(1, 9),
            )
        return 'n' * max(1, schema.get('minLength', 1))

    def _object(self, schema: ty.Mapping[str, ty.Any]) -> dict[str, ty.Any]:
        required = schema.get('required', ())
        found = {
            name: self._value(name, one)
            for name, one in schema.get('properties', {}).items()
            if name in required or self._chance.random() < 0.5
        }
        extra = schema.get('additionalProperties')
        if isinstance(extra, dict):
            for key in self._chance.sample(
                (
                    'vsched:cpu_runtime_us',
                    'vsched:cpu_period_us',
                    'vsched:backend',
                    'vsched:balloon',
                    'a',
                    '',
                ),
                2,
            ):
                found[key] = self._chance.choice(
                    ('10000', '20000', '-1', 'deadline', 'auto')
                )
        return found


def _schemas(application: flask.Flask) -> dict[str, list[dict[str, ty.Any]]]:
    """The schemas of queries and bodies, by noun."""
    made: dict[str, list[dict[str, ty.Any]]] = {}
    for rule, _, handler in openapi_document.routes(application):
        found = documentation.of(handler)
        if found is not None:
            schemas = made.setdefault(rule.endpoint.split('.')[0], [])
            for one in (found.query, found.body):
                if one is not None and one not in schemas:
                    schemas.append(one)
    return made


def send(client: flask.testing.FlaskClient, request: Request) -> ty.Any:
    """Send it; returns the response."""
    return client.open(
        request.path,
        method=request.method,
        environ_overrides={'QUERY_STRING': request.query},
        headers=request.headers,
        data=request.body,
    )
