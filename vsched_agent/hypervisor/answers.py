# SPDX-License-Identifier: Apache-2.0
"""Parse untrusted JSON from guests and QEMU.

Every input results in a value of bounded size or in
:class:`MalformedAnswer`.
"""

from collections.abc import Mapping
import json
import math
import typing as ty

from vsched_lib.contract import bounds

#: Longest answer, in characters: a guest with ``MAX_VCPUS`` sends less than
#: half of it. libvirt's own bound is 4 MiB.
MAX_CHARS = 1024 * 1024
#: Levels of arrays and objects.
MAX_DEPTH = 16
#: Values in one answer, at any level.
MAX_VALUES = 100_000
#: vCPUs of one instance; more than current hypervisors support.
MAX_VCPUS = 4096
#: Longest integer, in characters.
_MAX_DIGITS = 20


class MalformedAnswer(ValueError):
    """The text is not a valid answer."""


def decode(text: object) -> ty.Any:
    """Read one JSON document.

    :raises MalformedAnswer: when it is too long, too deep, or no JSON.
        Duplicate keys, numbers that are not finite and whole numbers of more
        than 64 bits are not accepted either.
    """
    if not isinstance(text, str):
        raise MalformedAnswer('%s instead of text' % type(text).__name__)
    if len(text) > MAX_CHARS:
        raise MalformedAnswer(
            '%d characters, more than %d' % (len(text), MAX_CHARS)
        )
    try:
        value = json.loads(
            text,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise MalformedAnswer('nested too deeply') from None
    except MalformedAnswer:
        raise
    except ValueError as error:
        raise MalformedAnswer('no JSON: %s' % error) from None
    _measure(value)
    return value


def returned(text: object) -> ty.Any:
    """Read an answer in QEMU's protocols (QMP and the guest agent's).

    :returns: what the command returned.
    :raises MalformedAnswer: as :func:`decode`, and when it is an error.
    """
    answer = mapping(decode(text))
    if 'return' not in answer:
        raise MalformedAnswer('nothing was returned: %s' % quote(answer))
    return answer['return']


def mapping(value: object) -> Mapping[str, ty.Any]:
    """Return an object.

    :raises MalformedAnswer: when it is none.
    """
    if not isinstance(value, dict):
        raise MalformedAnswer('%s is no object' % quote(value))
    return value


def items(value: object, most: int) -> list[ty.Any]:
    """Return an array.

    :param most: how many items it may have.
    :raises MalformedAnswer: when it is none, or longer.
    """
    if not isinstance(value, list):
        raise MalformedAnswer('%s is no array' % quote(value))
    if len(value) > most:
        raise MalformedAnswer('%d items, more than %d' % (len(value), most))
    return value


def integer(value: object, least: int, most: int) -> int:
    """Return a whole number within bounds.

    :raises MalformedAnswer: when it is none.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not (least <= value <= most)
    ):
        raise MalformedAnswer(
            '%s is no whole number from %d to %d' % (quote(value), least, most)
        )
    return value


def boolean(value: object) -> bool:
    """Return true or false.

    :raises MalformedAnswer: when it is neither.
    """
    if not isinstance(value, bool):
        raise MalformedAnswer('%s is neither true nor false' % quote(value))
    return value


def quote(value: object) -> str:
    """Return a value in printable ASCII, cut to a line's length."""
    try:
        text = ascii(value)
    except (RecursionError, ValueError):
        text = type(value).__name__
    return text if len(text) <= 200 else text[:200] + '...'


def _constant(word: str) -> ty.NoReturn:
    raise MalformedAnswer('%s is no number' % word)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MalformedAnswer('%s is no finite number' % text[:40])
    return value


def _integer(text: str) -> int:
    # Parsing a very long one takes very long.
    if len(text) > _MAX_DIGITS or abs(int(text)) > bounds.MAX_INTEGER:
        raise MalformedAnswer('%s has more than 64 bits' % text[:40])
    return int(text)


def _object(pairs: list[tuple[str, ty.Any]]) -> dict[str, ty.Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MalformedAnswer('an object has one key twice')
    return found


def _measure(value: ty.Any) -> None:
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
        if count > MAX_VALUES:
            raise MalformedAnswer('more than %d values' % MAX_VALUES)
        deeper: list[ty.Any] = []
        for one in level:
            if isinstance(one, dict):
                deeper.extend(one.values())
            elif isinstance(one, list):
                deeper.extend(one)
        if not deeper:
            return
        level = deeper
    raise MalformedAnswer('nested more than %d deep' % MAX_DEPTH)
