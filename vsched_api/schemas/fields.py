# SPDX-License-Identifier: Apache-2.0

"""Fields that several schemas share."""

from collections.abc import Iterable
from collections.abc import Sequence
import enum
import typing as ty

from vsched_lib.contract import extra_specs
from vsched_lib.contract import spec_values
from vsched_lib.model import reservation

Schema = dict[str, ty.Any]

#: No control characters: PostgreSQL takes no NUL, and no name has any. No
#: blanks at either end: MariaDB ignores those at the end when it compares.
_TEXT = r'^(?!\s)[^\x00-\x1f\x7f\ud800-\udfff]+(?<!\s)$'

UUID: Schema = {'type': 'string', 'format': 'uuid'}
NAME: Schema = {
    'type': 'string',
    'minLength': 1,
    'maxLength': 255,
    'pattern': _TEXT,
}
WORD: Schema = {
    'type': 'string',
    'minLength': 1,
    'maxLength': 64,
    'pattern': _TEXT,
}
TIME: Schema = {'type': 'string', 'format': 'date-time'}
LIMIT: Schema = {
    'type': 'integer',
    'minimum': 1,
    'maximum': 10**9,
    'description': 'How many items at most; never more than ``[api] '
    'max_limit``.',
}
MODE: Schema = {
    'type': 'string',
    'enum': list(map(str, reservation.Mode)),
    'description': '``capped``: the runtime is guarantee and cap. '
    '``work_conserving``: time that others leave idle may be used as well.',
}
#: What is enforced now, as an agent says; it may be newer.
BACKEND: Schema = {
    'type': 'string',
    'enum': list(map(str, reservation.Backend)),
}
#: What may be asked for, as in flavors.
WANTED_BACKEND: Schema = {
    'type': 'string',
    'enum': list(map(str, extra_specs.TABLE['backend'].available)),
}

# What a reservation can be is the model's to say; these only keep out what
# is no number of microseconds at all. The largest is that of the widest
# column it is stored in.
MICROSECONDS: Schema = {'type': 'integer', 'minimum': 1, 'maximum': 2**63 - 1}


#: The newest change that a request is based on; 0 for none.
GENERATION: Schema = {
    'type': 'integer',
    'minimum': 0,
    'maximum': 2**63 - 1,
    'description': 'The generation that the change is based on, 0 for none; '
    'with another one nothing is changed. The header ``If-Match`` with an '
    '``ETag`` means the same.',
}


def described(schema: Schema, text: str) -> Schema:
    """Return a schema with a description, in the words of an operator.

    :param text: CommonMark that is reStructuredText as well.
    """
    return {**schema, 'description': text}


def marker(schema: Schema, noun: str) -> Schema:
    """Return the schema of the last item of the previous page.

    :param schema: of what identifies the item.
    :param noun: the item with its identifier.
    """
    return described(
        schema, 'The %s that was the last of the page before.' % noun
    )


#: How many instances one request may name.
MAX_INSTANCES = 100

HOST = described(NAME, 'Only those of the host with this name.')
START = described(TIME, 'Only those of this time or later; in ISO 8601.')
END = described(TIME, 'Only those before this time; in ISO 8601.')


def extra_spec(key: str) -> Schema:
    """A value of an extra spec; null for the flavor's."""
    spec = extra_specs.TABLE[key]
    text = '%s ``null``: as the flavor says.' % spec.help
    if spec.type is spec_values.Type.CHOICE:
        return {
            'type': ['string', 'null'],
            'enum': [*map(str, spec.available), None],
            'description': text,
        }
    if spec.type is spec_values.Type.BOOLEAN:
        return {'type': ['boolean', 'null'], 'description': text}
    is_integer = spec.type is spec_values.Type.INTEGER
    convert: type[int | float] = int if is_integer else float
    return {
        'type': ['integer' if is_integer else 'number', 'null'],
        'description': text,
        'minimum': convert(spec.minimum or 0),
        'maximum': convert(spec.maximum or 0),
    }


def sorted_by(keys: Sequence[str]) -> dict[str, Schema]:
    """The fields that say how a list is sorted.

    :param keys: the first one is the default.
    """
    return {
        'sort_key': {
            'type': 'string',
            'enum': list(keys),
            'description': 'What the list is sorted by; ``%s`` without it. '
            'Items with the same value are in the order of their ``%s``.'
            % (keys[0], keys[0]),
        },
        'sort_dir': {
            'type': 'string',
            'enum': ['asc', 'desc'],
            'description': '``asc``, rising, also without it; or ``desc``.',
        },
    }


def any_of(words: type[enum.StrEnum], noun: str) -> Schema:
    """A filter that may be given more than once: any of these words.

    :param noun: what has one of the words.
    """
    return {
        'type': 'array',
        'items': {'type': 'string', 'enum': list(map(str, words))},
        'description': 'Only those with this %s; may be given more than '
        'once.' % noun,
    }


def many(schema: Schema, most: int, text: str) -> Schema:
    """A filter that may be given more than once: any of these values.

    :param most: how often.
    """
    return {
        'type': 'array',
        'items': schema,
        'maxItems': most,
        'description': '%s May be given up to %d times.' % (text, most),
    }


def closed(properties: dict[str, Schema], **more: ty.Any) -> Schema:
    """An object with these properties and no others."""
    return {
        'type': 'object',
        'properties': properties,
        'additionalProperties': False,
        **more,
    }


def at_least_one(names: Iterable[str]) -> Schema:
    """Keywords of an object that has one or more of these properties.

    Within ``allOf``: generators of types unite what stands in ``anyOf`` with
    the properties beside it, and an alternative without a type of its own
    would make anything acceptable.
    """
    return {'allOf': [{'anyOf': [{'required': [name]} for name in names]}]}


INSTANCES = many(UUID, MAX_INSTANCES, 'Only those of this instance.')
#: No query at all.
NOTHING = closed({})
