# SPDX-License-Identifier: Apache-2.0

"""What schemas of answers are made of.

An object of an answer has all of its properties, and no others. A property
that may be unknown is null. Each has a description.
"""

from collections.abc import Mapping
import dataclasses
import enum
import types
import typing as ty

from vsched_api.schemas import fields
from vsched_lib.contract import wire

Schema = fields.Schema


def integer(text: str) -> Schema:
    """An integer."""
    return {'type': 'integer', 'description': text}


def number(text: str) -> Schema:
    """A number."""
    return {'type': 'number', 'description': text}


def boolean(text: str) -> Schema:
    """True or false."""
    return {'type': 'boolean', 'description': text}


def string(text: str) -> Schema:
    """Text, or a word that a newer agent may report."""
    return {'type': 'string', 'description': text}


def word(words: type[enum.StrEnum], text: str) -> Schema:
    """One of the words that this release stores."""
    return {
        'type': 'string',
        'enum': list(map(str, words)),
        'description': text,
    }


def uuid(text: str) -> Schema:
    """A UUID."""
    return {'type': 'string', 'format': 'uuid', 'description': text}


def time(text: str) -> Schema:
    """A time in ISO 8601, UTC, to the microsecond."""
    return {'type': 'string', 'format': 'date-time', 'description': text}


def anything(text: str) -> Schema:
    """An object whose properties are up to the agent that reports it."""
    return {'type': 'object', 'description': text}


def items(schema: Schema, text: str) -> Schema:
    """A list."""
    return {'type': 'array', 'items': schema, 'description': text}


def optional(schema: Schema, text: str | None = None) -> Schema:
    """The same, or null.

    :param text: the description; that of the schema if None.
    """
    if 'title' in schema:
        found: Schema = {'anyOf': [schema, {'type': 'null'}]}
    else:
        found = {**schema, 'type': [schema['type'], 'null']}
        if 'enum' in schema:
            found['enum'] = [*schema['enum'], None]
    text = schema.get('description') if text is None else text
    return found if text is None else {**found, 'description': text}


def closed(
    properties: Mapping[str, Schema],
    title: str | None = None,
    text: str | None = None,
) -> Schema:
    """An object with all of these properties.

    :param title: its name in the OpenAPI document, where it is a schema of
        its own.
    """
    found = fields.closed(dict(properties), required=list(properties))
    if title is not None:
        found['title'] = title
    return found if text is None else {**found, 'description': text}


LINKS = items(
    closed(
        {
            'rel': string('``self``, or ``next`` for the next page.'),
            'href': string(
                'A URL, or a path where the service does not know its own '
                'address.'
            ),
        },
        'Link',
    ),
    'Related addresses.',
)


def one(name: str, schema: Schema) -> Schema:
    """The answer with one item."""
    return closed({name: schema})


def page(name: str, schema: Schema) -> Schema:
    """The answer with a page of items."""
    return closed(
        {name: items(schema, 'The items of the page.'), 'links': LINKS}
    )


_TYPES: Mapping[type, str] = types.MappingProxyType(
    {str: 'string', int: 'integer', float: 'number', bool: 'boolean'}
)


def message(
    kind: type[wire.Message], texts: Mapping[str, str], **others: Schema
) -> dict[str, Schema]:
    """Return the properties of a message, as its ``to_dict`` makes them.

    Its types say which words are closed: what a newer agent may report is
    text.

    :param texts: the description of each field.
    :param others: the schemas of fields that are messages themselves, or
        lists of them.
    """
    hints = ty.get_type_hints(kind, include_extras=True)
    return {
        field.name: others.get(field.name)
        or _of_hint(hints[field.name], texts[field.name])
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
    }


def _of_hint(hint: ty.Any, text: str) -> Schema:
    kind, _, nullable = wire.split(hint)
    found: Schema
    if ty.get_origin(kind) is tuple:
        item = _of_hint(ty.get_args(kind)[0], '')
        del item['description']
        found = items(item, text)
    elif ty.get_origin(kind) is dict:
        found = anything(text)
    elif kind in _TYPES:
        found = {'type': _TYPES[kind], 'description': text}
    elif issubclass(kind, enum.StrEnum):
        found = word(kind, text)
    else:
        raise TypeError('%s: give its schema' % kind)
    return optional(found) if nullable else found
