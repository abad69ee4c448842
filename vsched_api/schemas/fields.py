# SPDX-License-Identifier: Apache-2.0

"""Fields that several schemas share."""

import enum
import typing as ty

from vsched_lib.contract import extra_specs
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
LIMIT: Schema = {'type': 'integer', 'minimum': 1, 'maximum': 10**9}
MODE: Schema = {'type': 'string', 'enum': list(map(str, reservation.Mode))}
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


#: The newest change that a request knows of; 0 for none.
GENERATION: Schema = {'type': 'integer', 'minimum': 0, 'maximum': 2**63 - 1}


def extra_spec(key: str) -> Schema:
    """A value of an extra spec; null for the flavor's."""
    spec = extra_specs.TABLE[key]
    if spec.type is extra_specs.Type.CHOICE:
        return {
            'type': ['string', 'null'],
            'enum': [*map(str, spec.available), None],
        }
    if spec.type is extra_specs.Type.BOOLEAN:
        return {'type': ['boolean', 'null']}
    kind = 'integer' if spec.type is extra_specs.Type.INTEGER else 'number'
    return {
        'type': [kind, 'null'],
        'minimum': float(spec.minimum or 0),
        'maximum': float(spec.maximum or 0),
    }


def any_of(words: type[enum.StrEnum]) -> Schema:
    """A filter that may be given more than once: any of these words."""
    return {
        'type': 'array',
        'items': {'type': 'string', 'enum': list(map(str, words))},
    }


def closed(properties: dict[str, Schema], **more: ty.Any) -> Schema:
    """An object with these properties and no others."""
    return {
        'type': 'object',
        'properties': properties,
        'additionalProperties': False,
        **more,
    }


#: No query at all.
NOTHING = closed({})
