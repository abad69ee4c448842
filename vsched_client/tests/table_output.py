# SPDX-License-Identifier: Apache-2.0

"""What commands write for people: titles, and values with their units."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import re
import typing as ty

from vsched_client.osc import tables
from vsched_client.tests import entry_points
from vsched_client.tests import outputs

_EXPORT = 'cpu profile export'
#: A table has the rows of another command.
_ROWS_OF = {_EXPORT: 'cpu profile show'}
#: Values as Python or JSON have them.
_RAW = re.compile(r'None|True|False|null|true|false|[\[{].*', re.DOTALL)
#: A number whose unit is in the name of its field. Extra specs have colons.
_UNIT_IN_NAME = re.compile(r'^\w+_(?:mcpu|ns|ppm|s|us): -?[\d.]+$', re.M)

Row = dict[str, str]


class TableOutput:
    """What one command writes as a table.

    :param command: as its entry point names it, with blanks.
    :param arguments: the rest of the words.
    """

    def __init__(self, command: str, arguments: Sequence[str]) -> None:
        self._command = command
        rows_of = _ROWS_OF.get(command, command)
        kind = entry_points.load(rows_of)
        self._is_list = outputs.is_list(rows_of)
        self._follows = '--follow' in arguments
        if self._is_list:
            options: argparse.Namespace = (
                kind(None, None)
                .get_parser('openstack')
                .parse_args(list(arguments))
            )
            columns = kind(None, None).columns_of(options)
        else:
            columns = kind.columns
        self._columns: tables.Columns = tables.visible(
            tables.TABLE, columns, ()
        )

    def read(self, text: str) -> ty.Any:
        """Read what the command has written.

        :returns: values as text, by the names that fields have in the API;
            an empty object or list without a table.
        :raises AssertionError: if it is no table with the command's titles.
        """
        if self._follows:
            return [self._line(one) for one in text.splitlines()]
        lines = [
            [cell.strip() for cell in line.strip('|').split(' | ')]
            for line in text.splitlines()
            if line.startswith('|')
        ]
        if not lines:
            return [] if self._is_list else {}
        titles = [column.title for column in self._columns]
        if self._is_list:
            self._same(titles, lines[0])
            return [self._row(line) for line in lines[1:]]
        self._same(['Field', 'Value'], lines[0])
        values = _joined(lines[1:])
        self._same(titles, list(values))
        return self._row(list(values.values()))

    def _line(self, text: str) -> Row:
        # The last one is a sentence.
        return self._row(text.split('  ', len(self._columns) - 1))

    def _row(self, values: Sequence[str]) -> Row:
        fields = [column.field for column in self._columns]
        if len(values) != len(fields):
            raise AssertionError('%s: %s' % (self._command, values))
        return dict(zip(fields, values, strict=True))

    def _same(self, expected: Sequence[str], found: Sequence[str]) -> None:
        if list(expected) != list(found):
            raise AssertionError(
                '%s: titles %s, not %s' % (self._command, found, expected)
            )

    def check(self, found: list[Row] | Row) -> None:
        """Find values that are not for people.

        :param found: what was read.
        :raises AssertionError: naming the first of them.
        """
        for field, value in _values(found):
            if _RAW.fullmatch(value) or _UNIT_IN_NAME.search(value):
                raise AssertionError(
                    '%s: %s is %r' % (self._command, field, value)
                )


def _joined(lines: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return values by title; a value may have several lines."""
    found: dict[str, str] = {}
    title = ''
    for line in lines:
        name, _, value = ' | '.join(line).partition(' | ')
        if name:
            title = name
            found[title] = value
        else:
            found[title] += '\n' + value
    return found


def _values(found: list[Row] | Row) -> Iterator[tuple[str, str]]:
    for row in found if isinstance(found, list) else [found]:
        yield from row.items()
