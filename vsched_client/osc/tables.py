# SPDX-License-Identifier: Apache-2.0

"""Columns: a title and text with units for people, raw values for programs.

In a table a column has its title and its values as text. In every other
format it has the name of the API's field, which ends with the unit, and the
API's value.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import json
import typing as ty

from cliff import columns

from vsched_client.osc import terminal
from vsched_client import units

#: The format for people, and those that keep the types of values.
TABLE = 'table'
_TYPED = ('json', 'yaml')
_SHELL = 'shell'

Object = Mapping[str, ty.Any]
Rows = tuple[Sequence[str], Iterable[Sequence[ty.Any]]]


def plain(value: ty.Any) -> str:
    """Format any value of an answer."""
    if value is None:
        return '-'
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, float):
        return '%.6g' % value
    if isinstance(value, Mapping):
        return '\n'.join(
            '%s: %s' % _named(key, one) for key, one in (value.items())
        )
    if isinstance(value, (list, tuple)):
        return ', '.join(map(plain, value))
    return str(value)


def unless_none(text: Callable[[ty.Any], str]) -> Callable[[ty.Any], str]:
    """Return a formatter that formats None as a dash."""

    @functools.wraps(text)
    def formatted(value: ty.Any) -> str:
        return '-' if value is None else text(value)

    return formatted


mcpu = unless_none(units.format_mcpu)
us = unless_none(units.format_us)
ppm = unless_none(units.format_ppm)
error_ppm = unless_none(units.format_error_ppm)
seconds = unless_none(units.format_seconds)


@unless_none
def ns(value: float) -> str:
    """Format nanoseconds."""
    return units.format_us(value / 1000)


#: How numbers are shown, by the end of their field's name.
_UNITS: Mapping[str, Callable[[ty.Any], str]] = {
    'mcpu': mcpu,
    'ns': ns,
    'ppm': ppm,
    's': seconds,
    'us': us,
}


def _named(field: str, value: ty.Any) -> tuple[str, str]:
    """Return a field of an object, and its value, for people.

    A number has the unit beside it, and no more in its name. Text is not
    changed: extra specs have units in their names, too.
    """
    name, _, unit = field.rpartition('_')
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name and unit in _UNITS and (number or value is None):
        return name, _UNITS[unit](value)
    return field, plain(value)


@unless_none
def time(value: str) -> str:
    """Format a time of the API without its fraction of a second."""
    return str(value).partition('.')[0].rstrip('Z') + 'Z'


class Column(ty.NamedTuple):
    """A column of a list, or a row of one object.

    :param field: its name for programs.
    :param title: its name for people.
    :param text: formats a value for people.
    :param value: returns the value of an object; the field's own if None.
    :param extra: a table has it only when it is asked for.
    """

    field: str
    title: str
    text: Callable[[ty.Any], str] = plain
    value: Callable[[Object], ty.Any] | None = None
    extra: bool = False

    def of(self, one: Object) -> ty.Any:
        """Return the value of an object."""
        return one.get(self.field) if self.value is None else self.value(one)


Columns = Sequence[Column]


if ty.TYPE_CHECKING:
    _FormattableColumn = columns.FormattableColumn[ty.Any]
else:
    # Before cliff 4.9, which Debian 12 has, it is not generic.
    _FormattableColumn = columns.FormattableColumn


class Cell(_FormattableColumn):
    """A value that is shown as text and sorted as what it is.

    :param text: formats it.
    """

    def __init__(self, value: ty.Any, text: Callable[[ty.Any], str]) -> None:
        super().__init__(value)
        self._text = text

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Cell):
            return NotImplemented
        # Those without a value come last.
        return (self._value is None, _or(self._value)) < (
            other._value is None,
            _or(other._value),
        )

    def human_readable(self) -> str:
        """Return the text, safe for a terminal."""
        return terminal.clean_lines(self._text(self._value))


def _or(value: ty.Any) -> ty.Any:
    return 0 if value is None else value


def of_list(formatter: str, shown: Columns, rows: Iterable[Object]) -> Rows:
    """Return names and rows of a list as cliff expects them.

    :param formatter: the name of the output format.
    """
    return names(formatter, shown), _rows(formatter, shown, rows)


def _rows(
    formatter: str, shown: Columns, rows: Iterable[Object]
) -> Iterator[Sequence[ty.Any]]:
    for one in rows:
        if formatter == TABLE:
            yield [Cell(column.of(one), column.text) for column in shown]
        else:
            yield [raw(formatter, column.of(one)) for column in shown]


def of_one(
    formatter: str, shown: Columns, one: Object
) -> tuple[Sequence[str], Sequence[ty.Any]]:
    """Return names and values of one object as cliff expects them.

    Programs get every field that the API sent, but for links, and what is
    computed from them.
    """
    if formatter == TABLE:
        return names(formatter, shown), [
            Cell(column.of(one), column.text) for column in shown
        ]
    found = {name: value for name, value in one.items() if name != 'links'}
    for column in shown:
        found.setdefault(column.field, column.of(one))
    return list(found), [raw(formatter, value) for value in found.values()]


def visible(formatter: str, shown: Columns, asked: Collection[str]) -> Columns:
    """Return the columns that the output has.

    :param asked: names as :func:`translated` returns them.
    """
    return [
        column
        for column in shown
        if formatter != TABLE or not column.extra or column.title in asked
    ]


def names(formatter: str, shown: Columns) -> list[str]:
    """Return the names of columns in a format."""
    return [
        column.title if formatter == TABLE else column.field
        for column in shown
    ]


def translated(
    formatter: str, shown: Columns, asked: Iterable[str]
) -> list[str]:
    """Return names that a user gave as the format has them.

    Titles and fields are accepted in every format.
    """
    known = {
        _normal(name): column
        for column in shown
        for name in (column.field, column.title)
    }
    return [
        names(formatter, [known[_normal(one)]])[0]
        if _normal(one) in known
        else one
        for one in asked
    ]


def _normal(name: str) -> str:
    return name.strip().lower().replace(' ', '_')


def raw(formatter: str, value: ty.Any) -> ty.Any:
    """Return a value for programs.

    Formats of lines get a list or an object as JSON, and text without
    anything that a terminal or a shell would act on.
    """
    if formatter in _TYPED:
        return value
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value)
    if isinstance(value, str):
        value = terminal.clean(value)
        if formatter == _SHELL:
            value = terminal.quoted(value)
    return value
