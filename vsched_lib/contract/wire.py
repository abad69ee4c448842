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

"""How messages become JSON and are read again.

A reader ignores keys it does not know, so that a newer writer may add some;
a missing or ill-typed one is an error that names it.
"""

from collections.abc import Mapping
import dataclasses
import enum
import functools
import math
import reprlib
import types
import typing as ty


class MalformedMessage(ValueError):
    """A message that does not say what its type must say."""


class Message:
    """A dataclass that crosses processes."""

    def to_dict(self) -> dict[str, ty.Any]:
        """The message as JSON types."""
        return {
            field.name: value if value.__class__ in _ATOMS else _plain(value)
            for field in _fields(ty.cast(type, self.__class__))
            for value in (getattr(self, field.name),)}

    @classmethod
    def from_dict(cls, raw: object) -> ty.Self:
        """Read a message, ignoring unknown keys.

        :param raw: what :meth:`to_dict` made, after a trip through JSON.
        :raises MalformedMessage: naming the type and the key.
        """
        if not isinstance(raw, Mapping):
            raise MalformedMessage('%s: not an object' % cls.__name__)
        values: dict[str, ty.Any] = {}
        for name, where, read, required, exact in _fields(
                ty.cast(type, cls)):
            if name in raw:
                value = raw[name]
                values[name] = (
                    value if value.__class__ is exact else read(value))
            elif required:
                raise MalformedMessage('%s: missing' % where)
        return cls(**values)


_ATOMS = frozenset((str, int, float, bool, type(None)))


def _plain(value: ty.Any) -> ty.Any:
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


Reader = ty.Callable[[ty.Any], ty.Any]


class _Field(ty.NamedTuple):
    """One field, and how its value is read.

    :param exact: a value of exactly this type is taken as it is.
    """

    name: str
    where: str
    read: Reader
    required: bool
    exact: type | None


# Not float: one that is not finite is not taken.
_EXACT: dict[ty.Any, type] = {
    str: str, int: int, bool: bool, str | None: str, int | None: int}


# Thousands of samples pass here in every report, so what a type's
# annotations say is worked out once.
@functools.cache
def _fields(kind: type) -> tuple[_Field, ...]:
    hints = ty.get_type_hints(kind)
    return tuple(
        _Field(field.name, where, _reader(where, hints[field.name]),
               field.default is dataclasses.MISSING and
               field.default_factory is dataclasses.MISSING,
               _EXACT.get(hints[field.name]))
        for field in dataclasses.fields(kind)
        for where in ('%s.%s' % (kind.__name__, field.name),))


def _reader(where: str, hint: ty.Any) -> Reader:
    origin = ty.get_origin(hint)
    if origin in (ty.Union, types.UnionType):
        kinds = [one for one in ty.get_args(hint) if one is not type(None)]
        inner = _reader(where, kinds[0])
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _reader(where, ty.get_args(hint)[0])

        def read_list(value: ty.Any) -> tuple[ty.Any, ...]:
            if not isinstance(value, (list, tuple)):
                raise _malformed(where, value, 'a list')
            return tuple(map(item, value))
        return read_list
    if origin is dict:
        def read_object(value: ty.Any) -> dict[str, ty.Any]:
            if not isinstance(value, Mapping):
                raise _malformed(where, value, 'an object')
            return dict(value)
        return read_object
    if issubclass(hint, Message):
        return hint.from_dict
    if issubclass(hint, enum.Enum):
        def read_word(value: ty.Any) -> ty.Any:
            try:
                return hint(value)
            except ValueError:
                raise _malformed(
                    where, value, 'one of ' + ', '.join(hint)) from None
        return read_word
    return _float_reader(where) if hint is float else _atom_reader(
        where, hint)


def _atom_reader(where: str, kind: type) -> Reader:
    def read_atom(value: ty.Any) -> ty.Any:
        # Not isinstance(): bool is an int in Python, but never a number
        # here.
        if value.__class__ is kind:
            return value
        raise _malformed(where, value, 'of type ' + kind.__name__)
    return read_atom


def _float_reader(where: str) -> Reader:
    def read_float(value: ty.Any) -> float:
        if value.__class__ not in (float, int):
            raise _malformed(where, value, 'of type float')
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            # JSON has no word for it, and no database a place.
            raise _malformed(where, value, 'a finite number')
        return number
    return read_float


def _malformed(where: str, value: ty.Any, expected: str) -> MalformedMessage:
    return MalformedMessage(
        '%s: %s is not %s' % (where, reprlib.repr(value), expected))
