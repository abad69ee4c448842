# SPDX-License-Identifier: Apache-2.0

"""Check what a request says against a schema, naming the field."""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import itertools
import json
import math
import re
import typing as ty

import flask
import jsonschema
from werkzeug import exceptions as http_exceptions

from vsched_api.rest import clock
from vsched_api.rest import errors
from vsched_api.schemas import fields

Schema = Mapping[str, ty.Any]

#: Longest part of a problem that quotes the request.
_MAX_QUOTE_CHARS = 200

#: Most problems of a request that are listed. An answer is much longer than
#: the few characters of a body that make a problem.
MAX_PROBLEMS = 32

_FORMATS = jsonschema.FormatChecker(formats=())
_INTEGER = re.compile(r'-?[0-9]{1,18}\Z', re.ASCII)
_UUID = re.compile(
    r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z', re.ASCII | re.IGNORECASE
)


@_FORMATS.checks('uuid')
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or _UUID.match(value) is not None


@_FORMATS.checks('date-time', raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or bool(clock.seconds(value) or True)


def query(schema: Schema) -> dict[str, ty.Any]:
    """The request's query in the types of the schema.

    Times become seconds since the epoch, UUIDs lower case. A field of type
    array may be given more than once.

    :raises errors.InvalidRequest: naming each field that is wrong.
    """
    found: dict[str, ty.Any] = {}
    problems = []
    for name, texts in flask.request.args.lists():
        kind = schema['properties'].get(name, {})
        if kind.get('type') == 'array':
            found[name] = texts
        elif len(texts) > 1:
            problems.append('%s: given more than once' % _quote(name))
        else:
            found[name] = _typed(kind.get('type'), texts[0])
    _check(schema, found, problems)
    return _normal(schema, found)


def body(schema: Schema) -> dict[str, ty.Any]:
    """The request's body.

    :raises errors.InvalidRequest: naming each field that is wrong.
    :raises http_exceptions.HTTPException: when it is not JSON at all.
    """
    if flask.request.mimetype != 'application/json':
        raise http_exceptions.UnsupportedMediaType(
            'the body must be application/json'
        )
    content = flask.request.get_data(cache=False)
    # A body of unstated length is cut at the limit, not refused.
    if flask.request.content_length is None and len(content) >= (
        flask.request.max_content_length or math.inf
    ):
        raise http_exceptions.RequestEntityTooLarge
    try:
        found = json.loads(
            content.decode('utf-8'),
            parse_constant=_no_constant,
            object_pairs_hook=_unique,
        )
    except (ValueError, RecursionError) as problem:
        raise errors.InvalidRequest(
            ['body: not JSON: %s' % _clip(str(problem))]
        ) from None
    _check(schema, found, [])
    return _normal(schema, found)


def uuid(field: str, text: str) -> str:
    """A UUID from the path.

    :param field: what the route calls it.
    :raises errors.InvalidRequest: when it is none.
    """
    if _UUID.match(text) is None:
        raise errors.InvalidRequest(
            ['%s: %s is not a UUID' % (field, _quote(text))]
        )
    return text.lower()


def instance_uuid(text: str) -> str:
    """An instance's UUID from the path.

    :raises errors.InvalidRequest: when it is none.
    """
    return uuid('instance_uuid', text)


def name(field: str, text: str) -> str:
    """A name from the path.

    :param field: what the route calls it.
    :raises errors.InvalidRequest: when nothing has such a name.
    """
    _check(fields.closed({field: fields.NAME}), {field: text}, [])
    return text


def _no_constant(word: str) -> ty.NoReturn:
    raise ValueError('%s is not a JSON number' % word)


def _unique(pairs: list[tuple[str, ty.Any]]) -> dict[str, ty.Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        raise ValueError(
            '%s is given more than once'
            % next(_quote(name) for name, count in counts.items() if count > 1)
        )
    return found


def _typed(kind: ty.Any, text: str) -> ty.Any:
    if kind == 'integer' and _INTEGER.match(text):
        return int(text)
    if kind == 'boolean':
        return {'true': True, 'false': False}.get(text.lower(), text)
    return text


def _unique_items(
    validator: ty.Any, wanted: bool, instance: ty.Any, schema: Schema
) -> Iterator[ty.Any]:
    """Compare items with each other only if there are not too many of them.

    Their number is an error of its own. Items that cannot be sorted take as
    many comparisons as the square of it.
    """
    if not isinstance(instance, list) or (
        len(instance) <= schema.get('maxItems', math.inf)
    ):
        yield from (
            _BASE.VALIDATORS['uniqueItems'](
                validator, wanted, instance, schema
            )
            or ()
        )


_BASE: ty.Any = jsonschema.Draft202012Validator
_VALIDATOR = jsonschema.validators.extend(
    _BASE, {'uniqueItems': _unique_items}
)


def _check(schema: Schema, found: ty.Any, problems: list[str]) -> None:
    validator = _VALIDATOR(schema, format_checker=_FORMATS)
    # One more than is listed, to detect further ones.
    for error in itertools.islice(
        validator.iter_errors(found), MAX_PROBLEMS + 1
    ):
        problems.extend(_describe(error))
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [
            'body: there are more than %d problems' % MAX_PROBLEMS
        ]
    if problems:
        raise errors.InvalidRequest(problems)


def _describe(error: ty.Any) -> list[str]:
    path = '.'.join(
        part for part in error.absolute_path if isinstance(part, str)
    )
    if error.validator == 'additionalProperties':
        known = error.schema['properties']
        return [
            '%s: not known; known: %s'
            % (_quote(name), ', '.join(known) or 'none')
            for name in error.instance
            if name not in known
        ]
    if error.validator == 'required':
        # One error each; the missing one is only named in its message.
        return [
            '%s: required' % name
            for name in error.validator_value
            if name not in error.instance and repr(name) in error.message
        ]
    if error.validator == 'anyOf':
        return [
            'body: at least one of %s is needed'
            % ', '.join(one['required'][0] for one in error.validator_value)
        ]
    if error.validator == 'format':
        return [
            '%s: %s is not a %s'
            % (
                path,
                _quote(error.instance),
                _FORMAT_WORDS[error.validator_value],
            )
        ]
    if error.validator == 'maxItems':
        return [
            '%s: %d are given; accepted are at most %d'
            % (path, len(error.instance), error.validator_value)
        ]
    if error.validator == 'pattern':
        return [
            '%s: %s has characters that no name has'
            % (path, _quote(error.instance))
        ]
    return ['%s: %s' % (path or 'body', _clip(error.message))]


_FORMAT_WORDS = {'uuid': 'UUID', 'date-time': 'time in ISO 8601'}


def _clip(text: str) -> str:
    # The end says what is wrong, the start quotes the value.
    if len(text) > _MAX_QUOTE_CHARS:
        half = _MAX_QUOTE_CHARS // 2
        text = text[:half] + '...' + text[-half:]
    return text.encode('utf-8', 'backslashreplace').decode('utf-8')


def _quote(value: str) -> str:
    return _clip(ascii(value)[1:-1])


_NORMAL: dict[str, Callable[[str], ty.Any]] = {
    'uuid': str.lower,
    'date-time': clock.seconds,
}


def _normal(schema: Schema, found: dict[str, ty.Any]) -> dict[str, ty.Any]:
    return {
        name: _normal_value(schema['properties'][name], value)
        for name, value in found.items()
    }


def _normal_value(schema: Schema, value: ty.Any) -> ty.Any:
    if isinstance(value, list):
        item = schema.get('items', {})
        return [_normal_value(item, one) for one in value]
    form = schema.get('format')
    return _NORMAL[form](value) if form in _NORMAL else value
