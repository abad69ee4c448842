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

"""Values that every database stores.

What none of them has a way to store is refused with
:class:`vsched_lib.contract.wire.MalformedMessage`. A value comes with the
name of its field, for the sentence that refuses it.
"""

from collections.abc import Mapping
import json
import math
import re
import typing as ty
import uuid as uuids

from vsched_lib.contract import wire

#: 9999-12-31T23:00:00Z: the last full hour that has an ISO 8601 form.
_LATEST_S = 253_402_297_200.0
#: What 64 bits with a sign hold.
MAX_INTEGER = 2**63 - 1
_MAX_VCPUS = 2**31 - 1
_MAX_NAME_CHARS = 255
_MAX_WORD_CHARS = 64
_MAX_DETAIL_CHARS = 4000
# As str(uuid.UUID()) writes it.
_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', re.ASCII)

Object = dict[str, ty.Any]


def host_name(name: str) -> str:
    """A host's name as it is, for it must match what the agent is called.

    :raises wire.MalformedMessage: when no column takes it.
    """
    if not 0 < len(name) <= _MAX_NAME_CHARS or name != text(name):
        raise wire.MalformedMessage(
            'Report.host: %s is not 1 to %d characters of text' % (
                ascii(name[:_MAX_WORD_CHARS]), _MAX_NAME_CHARS))
    return name


def sentence(value: str) -> str:
    """A sentence that fits its column."""
    return text(value)[:_MAX_DETAIL_CHARS]


def name(value: str) -> str:
    """A name, cut where its column ends."""
    return text(value)[:_MAX_NAME_CHARS]


def text(value: str) -> str:
    """Characters that every database takes."""
    # PostgreSQL takes no NUL, and no database half a surrogate pair.
    return value.encode('utf-8', 'replace').decode('utf-8').replace(
        '\0', '\N{REPLACEMENT CHARACTER}')


def word(where: str, value: str) -> str:
    """A short text that is refused, not cut, when it is too long."""
    if len(value) > _MAX_WORD_CHARS:
        raise wire.MalformedMessage(
            '%s: %d characters are more than %d' % (
                where, len(value), _MAX_WORD_CHARS))
    return text(value)


def maybe(check: ty.Callable[[str, ty.Any], ty.Any], where: str,
          value: ty.Any) -> ty.Any:
    """None, or what a check makes of a value."""
    return None if value is None else check(where, value)


def integer(where: str, value: int, highest: int = MAX_INTEGER) -> int:
    """A whole number of 64 bits."""
    if not -highest <= value <= highest:
        raise wire.MalformedMessage(
            '%s: a number this large can not be stored' % where)
    return value


def count(where: str, value: int) -> int:
    """A whole number that is not negative."""
    if value < 0:
        raise wire.MalformedMessage('%s: %d is below 0' % (where, value))
    return integer(where, value)


def vcpus(where: str, value: int) -> int:
    """A number of vCPUs."""
    if value < 0:
        raise wire.MalformedMessage('%s: %d is below 0' % (where, value))
    return integer(where, value, _MAX_VCPUS)


def moment(where: str, value: float) -> float:
    """A time in seconds since 1970."""
    if not (math.isfinite(value) and 0 <= value <= _LATEST_S):
        raise wire.MalformedMessage(
            '%s: %r is not a time in seconds since 1970' % (where, value))
    return value


def uuid(where: str, value: str) -> str:
    """A UUID in its usual form."""
    if _UUID.fullmatch(value):
        return value
    try:
        return str(uuids.UUID(value))
    except ValueError:
        raise wire.MalformedMessage('%s: %s is not a UUID' % (
            where, ascii(value[:_MAX_WORD_CHARS]))) from None


def number(where: str, value: float) -> float:
    """A finite number."""
    if not math.isfinite(value):
        raise wire.MalformedMessage(
            '%s: %r is not a finite number' % (where, value))
    return value


def json_object(where: str, value: Mapping[str, ty.Any]) -> Object:
    """A JSON object."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise wire.MalformedMessage('%s: %s' % (
            where, problem)) from None
    return ty.cast(Object, _clean_object(value))


def _clean_object(value: ty.Any) -> ty.Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {text(str(key)): _clean_object(item)
                for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean_object(item) for item in value]
    return value
