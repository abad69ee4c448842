# SPDX-License-Identifier: Apache-2.0

"""Lists of messages by column: the name of each field once, with all values.

Samples are most of what agents send. As one object for each, the names of
their fields are most of the text, which is read and signed twice.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import itertools
import operator
import typing as ty

from vsched_lib.contract import bounds

T = ty.TypeVar('T')

#: The fields of a message with their defaults, and what returns their values.
_Layout = tuple[
    tuple[tuple[str, ty.Any], ...], Callable[[ty.Any], tuple[ty.Any, ...]]
]

#: Reads all values of one field.
Reader = Callable[[ty.Any], Sequence[ty.Any]]


class MalformedColumns(ValueError):
    """Columns that are no list of messages; the text has the reason."""


@functools.cache
def _layout(kind: ty.Any) -> _Layout:
    fields = dataclasses.fields(kind)
    return (
        tuple((field.name, field.default) for field in fields),
        operator.attrgetter(*(field.name for field in fields)),
    )


def write(kind: type, rows: Sequence[ty.Any]) -> dict[str, list[ty.Any]]:
    """Return messages by column.

    :param kind: a dataclass of numbers, strings and lists of them, with more
        than one field.
    :param rows: its messages, at least one.
    :returns: the values of each field. A field of which all have the default
        is left out.
    """
    fields, values = _layout(kind)
    return {
        name: list(column)
        for (name, default), column in zip(
            fields, zip(*map(values, rows), strict=True), strict=True
        )
        if column.count(default) < len(column)
    }


def length(kind: type, raw: Mapping[ty.Any, ty.Any]) -> int:
    """Return how many messages there are at most, before anything is read."""
    return max(
        (
            len(raw[name])
            for name, _ in _layout(kind)[0]
            if isinstance(raw.get(name), (list, tuple))
        ),
        default=0,
    )


def read(
    kind: type[T],
    readers: Mapping[str, Reader],
    bound: bounds.Items,
    raw: Mapping[ty.Any, ty.Any],
) -> tuple[T, ...]:
    """Return the messages of columns, ignoring those that are not known.

    :param readers: of each field, in the order of the fields.
    :raises MalformedColumns: when there are not as many values of each.
    :raises ValueError: of a reader.
    """
    count = None
    for name in readers:
        if name not in raw:
            continue
        if not isinstance(raw[name], (list, tuple)):
            raise MalformedColumns('%s is not a list' % name)
        if count is None:
            count = len(raw[name])
        elif len(raw[name]) != count:
            raise MalformedColumns(
                '%d values of %s are not %d' % (len(raw[name]), name, count)
            )
    if count is None or not bound.low <= count <= bound.high:
        raise MalformedColumns(
            '%d items: accepted is %s' % (count or 0, bound)
        )
    columns: list[ty.Iterable[ty.Any]] = []
    for name, default in _layout(ty.cast(ty.Hashable, kind))[0]:
        if name in raw:
            columns.append(readers[name](raw[name]))
        elif default is dataclasses.MISSING:
            raise MalformedColumns('%s is missing' % name)
        else:
            columns.append(itertools.repeat(default, count))
    return tuple(map(kind, *columns))
