# SPDX-License-Identifier: Apache-2.0

"""Conversion of messages to JSON and back.

A reader ignores keys it does not know, so that a newer writer may add some;
a missing one, an ill-typed one and one outside the bounds that its field
declares (:mod:`vsched_lib.contract.bounds`) is an error that names the
field, the value and what is accepted.
"""

from collections.abc import Mapping
import dataclasses
import enum
import functools
import math
import re
import reprlib
import types
import typing as ty

from vsched_lib.contract import bounds
from vsched_lib.contract import columns


class MalformedMessage(ValueError):
    """A message that does not match its type."""


class Message:
    """A dataclass that crosses processes."""

    #: How many items all lists of a message may have together.
    MAX_ITEMS: ty.ClassVar[int | None] = None

    def to_dict(self, by_column: bool = False) -> dict[str, ty.Any]:
        """Return the message as JSON types.

        :param by_column: whether its lists that may be sent by column are.
        """
        return {
            field.name: value
            if value.__class__ in _ATOMS
            else columns.write(field.columns, value)
            if by_column and field.columns is not None and value
            else _plain(value)
            for field in _fields(ty.cast(type, self.__class__))
            for value in (getattr(self, field.name),)
        }

    @classmethod
    def from_dict(cls, raw: object) -> ty.Self:
        """Read a message, ignoring unknown keys.

        :param raw: what :meth:`to_dict` made, after a trip through JSON.
        :raises MalformedMessage: naming the type and the key.
        """
        if not isinstance(raw, Mapping):
            raise MalformedMessage('%s: not an object' % cls.__name__)
        if cls.MAX_ITEMS is not None:
            _check_size(cls, cls.MAX_ITEMS, raw)
        values: dict[str, ty.Any] = {}
        for name, where, read, required, exact, low, high, _ in _fields(
            ty.cast(type, cls)
        ):
            if name in raw:
                value = raw[name]
                values[name] = (
                    value
                    if value.__class__ is exact and low <= value <= high
                    else read(value)
                )
            elif required:
                raise MalformedMessage('%s: missing' % where)
        return cls(**values)


_TEXT = frozenset((str,))
_ATOMS = frozenset((str, int, float, bool, type(None)))


def _check_size(kind: type, most: int, raw: Mapping[ty.Any, ty.Any]) -> None:
    # Before anything is read: the time of reading grows with the items.
    lengths = {
        field.where: len(value)
        if isinstance(value, (list, tuple))
        else columns.length(field.columns, value)
        for field in _fields(kind)
        for value in (raw.get(field.name),)
        if isinstance(value, (list, tuple))
        or (field.columns is not None and isinstance(value, Mapping))
    }
    total = sum(lengths.values())
    if total > most:
        raise MalformedMessage(
            '%s: %d items are more than %d; %s has the most'
            % (
                kind.__name__,
                total,
                most,
                max(lengths, key=lengths.__getitem__),
            )
        )


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

    :param exact: a value of exactly this type, from ``low`` to ``high``, is
        taken as it is.
    :param columns: of which messages it is a list that may be sent by column.
    """

    name: str
    where: str
    read: Reader
    required: bool
    exact: type | None
    low: ty.Any
    high: ty.Any
    columns: ty.Any


# Thousands of samples pass here in every report, so a type's annotations are
# evaluated once.
@functools.cache
def _fields(kind: type) -> tuple[_Field, ...]:
    hints = ty.get_type_hints(kind, include_extras=True)
    return tuple(
        _Field(
            field.name,
            where,
            _reader(where, hints[field.name]),
            field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING,
            *_exact(hints[field.name]),
            _by_column(hints[field.name]),
        )
        for field in dataclasses.fields(kind)
        for where in ('%s.%s' % (kind.__name__, field.name),)
    )


def split(hint: ty.Any) -> tuple[ty.Any, ty.Any, bool]:
    """Return a field's annotation in parts.

    :returns: the type without its bound, the bound or None, and whether the
        field may be None.
    """
    optional = False
    if ty.get_origin(hint) in (ty.Union, types.UnionType):
        (hint,) = (one for one in ty.get_args(hint) if one is not type(None))
        optional = True
    if ty.get_origin(hint) is ty.Annotated:
        kind, bound = ty.get_args(hint)
        return kind, bound, optional
    return hint, None, optional


def _exact(hint: ty.Any) -> tuple[type | None, ty.Any, ty.Any]:
    kind, bound, _ = split(hint)
    if kind is bool:
        return bool, False, True
    if isinstance(bound, bounds.Range):
        return kind, bound.low, bound.high
    return None, 0, 0


def _by_column(hint: ty.Any) -> ty.Any:
    kind, bound, _ = split(hint)
    if isinstance(bound, bounds.Items) and bound.columns:
        return ty.get_args(kind)[0]
    return None


def _reader(where: str, hint: ty.Any) -> Reader:
    kind, bound, optional = split(hint)
    read = _required_reader(where, kind, bound)
    if not optional:
        return read
    return lambda value: None if value is None else read(value)


def _required_reader(where: str, kind: ty.Any, bound: ty.Any) -> Reader:
    origin = ty.get_origin(kind)
    if origin is tuple and isinstance(bound, bounds.Items):
        hint = ty.get_args(kind)[0]
        read_list = _list_reader(where, hint, bound)
        if bound.columns:
            return _columns_reader(where, hint, bound, read_list)
        return read_list
    if origin is dict and isinstance(bound, bounds.Json):
        return _object_reader(where, bound)
    if kind is str and isinstance(bound, bounds.Text):
        return _text_reader(where, bound)
    if kind in (int, float) and isinstance(bound, bounds.Range):
        return _number_reader(where, kind, bound)
    if origin is not None or kind in (str, int, float):
        raise TypeError('%s: %s declares no bound' % (where, kind))
    if kind is bool:
        return _atom_reader(where, kind)
    if issubclass(kind, Message):
        read_message: Reader = kind.from_dict
        return read_message
    if issubclass(kind, enum.Enum):

        def read_word(value: ty.Any) -> ty.Any:
            try:
                return kind(value)
            except ValueError:
                raise malformed(
                    where, value, 'one of ' + ', '.join(kind)
                ) from None

        return read_word
    raise TypeError('%s: %s is no type of a message' % (where, kind))


def _columns_reader(
    where: str, kind: ty.Any, bound: bounds.Items, read_list: Reader
) -> Reader:
    hints = ty.get_type_hints(kind, include_extras=True)
    readers = {
        field.name: _list_reader(
            field.where, hints[field.name], bounds.Items(bound.high)
        )
        for field in _fields(kind)
    }

    def read_columns(value: ty.Any) -> tuple[ty.Any, ...]:
        if not isinstance(value, Mapping):
            return ty.cast(tuple[ty.Any, ...], read_list(value))
        try:
            return columns.read(kind, readers, bound, value)
        except columns.MalformedColumns as problem:
            raise MalformedMessage('%s: %s' % (where, problem)) from None

    return read_columns


def _list_reader(where: str, hint: ty.Any, bound: bounds.Items) -> Reader:
    item = _reader(where, hint)
    exact, low, high = _exact(hint)
    only = frozenset((exact,))

    def read_list(value: ty.Any) -> tuple[ty.Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise malformed(where, value, 'a list')
        if not bound.low <= len(value) <= bound.high:
            raise MalformedMessage(
                '%s: %d items: accepted is %s' % (where, len(value), bound)
            )
        if (
            exact is not None
            and value
            and only.issuperset(map(type, value))
            and low <= min(value)
            and max(value) <= high
            # What is not a number is neither above nor below any.
            and (exact is not float or not math.isnan(sum(value)))
        ):
            return tuple(value)
        if _TEXT.issuperset(map(type, value)):
            # Few different ones, such as UUIDs.
            known = {one: item(one) for one in set(value)}
            return tuple(map(known.__getitem__, value))
        return tuple(map(item, value))

    return read_list


def _object_reader(where: str, bound: bounds.Json) -> Reader:
    def read_object(value: ty.Any) -> dict[str, ty.Any]:
        if not isinstance(value, Mapping):
            raise malformed(where, value, 'an object')
        return ty.cast(dict[str, ty.Any], _Object(where, bound).read(value))

    return read_object


class _Object:
    """Reads one JSON object within its bound."""

    def __init__(self, where: str, bound: bounds.Json) -> None:
        self._where = where
        self._bound = bound
        self._left = bound.values

    def read(self, value: ty.Any, depth: int = 0) -> ty.Any:
        """Return the value, cleaned.

        :raises MalformedMessage: when it is not within the bound.
        """
        if isinstance(value, Mapping):
            self._descend(value, depth)
            return {
                self._key(key): self.read(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            self._descend(value, depth)
            return [self.read(item, depth + 1) for item in value]
        if isinstance(value, str) and len(value) <= self._bound.chars:
            return clean(value)
        if (
            value is None
            or value.__class__ is bool
            or (value.__class__ is int and abs(value) <= bounds.MAX_INTEGER)
            or (value.__class__ is float and math.isfinite(value))
        ):
            return value
        raise malformed(self._where, value, str(self._bound))

    def _descend(self, value: ty.Any, depth: int) -> None:
        self._left -= len(value)
        if depth >= self._bound.depth or self._left < 0:
            raise malformed(self._where, value, str(self._bound))

    def _key(self, key: ty.Any) -> str:
        if not isinstance(key, str) or len(key) > self._bound.key_chars:
            raise malformed(self._where, key, 'a key of ' + str(self._bound))
        return clean(key)


def _text_reader(where: str, bound: bounds.Text) -> Reader:
    if bound.clip:

        def read_shown(value: ty.Any) -> str:
            if value.__class__ is not str:
                raise malformed(where, value, 'of type str')
            return clean(value[: bound.max_chars])

        return read_shown
    match = re.compile(bound.pattern or '(?s:.*)').fullmatch
    most = bound.max_chars

    def read_text(value: ty.Any) -> ty.Any:
        if value.__class__ is not str:
            raise malformed(where, value, 'of type str')
        if len(value) > most or match(value) is None:
            raise malformed(where, value, str(bound))
        return value

    return read_text


def clean(value: str) -> str:
    """Replace the characters that no database stores."""
    if value.isprintable():
        return value
    return bounds.UNPRINTABLE.sub('\N{REPLACEMENT CHARACTER}', value)


def _atom_reader(where: str, kind: type) -> Reader:
    def read_atom(value: ty.Any) -> ty.Any:
        # Not isinstance(): bool is an int in Python, but never a number
        # here.
        if value.__class__ is kind:
            return value
        raise malformed(where, value, 'of type ' + kind.__name__)

    return read_atom


def _number_reader(where: str, kind: type, bound: bounds.Range) -> Reader:
    accepted = (kind,) if kind is int else (float, int)
    range_ = ('a number ' if kind is int else 'a finite number ') + str(bound)

    def read_number(value: ty.Any) -> ty.Any:
        if value.__class__ not in accepted:
            raise malformed(where, value, 'of type ' + kind.__name__)
        # Not a number is not in any range. Integers are compared before
        # they are converted: float() refuses large ones.
        if not bound.low <= value <= bound.high:
            raise malformed(where, value, range_)
        return kind(value)

    return read_number


def malformed(where: str, value: ty.Any, expected: str) -> MalformedMessage:
    """Return the error of a value that a field does not accept."""
    try:
        quoted = reprlib.repr(value)
    except ValueError:
        # Python does not write integers of thousands of digits.
        quoted = 'a number of thousands of digits'
    return MalformedMessage('%s: %s is not %s' % (where, quoted, expected))
