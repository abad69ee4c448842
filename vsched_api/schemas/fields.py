# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Fields that several schemas share."""

import enum
import typing as ty

from vsched_lib.model import reservation

Schema = dict[str, ty.Any]

#: No control characters: PostgreSQL takes no NUL, and no name has any.
_TEXT = r'^[^\x00-\x1f\x7f\ud800-\udfff]+$'

UUID: Schema = {'type': 'string', 'format': 'uuid'}
NAME: Schema = {'type': 'string', 'minLength': 1, 'maxLength': 255,
                'pattern': _TEXT}
WORD: Schema = {'type': 'string', 'minLength': 1, 'maxLength': 64,
                'pattern': _TEXT}
TIME: Schema = {'type': 'string', 'format': 'date-time'}
LIMIT: Schema = {'type': 'integer', 'minimum': 1, 'maximum': 10**9}
MODE: Schema = {'type': 'string', 'enum': list(map(str, reservation.Mode))}
BACKEND: Schema = {
    'type': 'string', 'enum': list(map(str, reservation.Backend))}

# What a reservation can be is the model's to say; these only keep out what
# is no number of microseconds at all. The largest is that of the widest
# column it is stored in.
MICROSECONDS: Schema = {
    'type': 'integer', 'minimum': 1, 'maximum': 2**63 - 1}


def any_of(words: type[enum.StrEnum]) -> Schema:
    """A filter that may be given more than once: any of these words."""
    return {'type': 'array', 'items': {
        'type': 'string', 'enum': list(map(str, words))}}


def closed(properties: dict[str, Schema], **more: ty.Any) -> Schema:
    """An object with these properties and no others."""
    return {'type': 'object', 'properties': properties,
            'additionalProperties': False, **more}


#: No query at all.
NOTHING = closed({})
