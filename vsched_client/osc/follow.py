# SPDX-License-Identifier: Apache-2.0

"""Writes rows as they come, in the formats of lists."""

from collections.abc import Callable
from collections.abc import Iterable
import csv
import io
import json
import typing as ty

from vsched_client.osc import tables

Row = list[ty.Any]


def write(
    stream: ty.TextIO,
    formatter: str,
    shown: tables.Columns,
    objects: Iterable[tables.Object],
) -> None:
    """Write each object as a line, as soon as it comes.

    :param formatter: ``json``: one JSON object a line; ``csv``: with a line
        of names first; ``yaml``: items of one list; anything else: values
        with two blanks between them.
    """
    line = _LINES.get(formatter, _text)
    if formatter == 'csv':
        stream.write(_csv(shown, [column.field for column in shown]))
    for one in objects:
        if formatter == tables.TABLE:
            row: Row = [
                tables.Cell(column.of(one), column.text).human_readable()
                for column in shown
            ]
        else:
            row = [tables.raw(formatter, column.of(one)) for column in shown]
        stream.write(line(shown, row))
        stream.flush()


def _text(shown: tables.Columns, row: Row) -> str:
    return '  '.join(str(one).replace('\n', ' ') for one in row) + '\n'


def _named(shown: tables.Columns, row: Row) -> dict[str, ty.Any]:
    return dict(zip((column.field for column in shown), row, strict=True))


def _json(shown: tables.Columns, row: Row) -> str:
    return json.dumps(_named(shown, row)) + '\n'


def _yaml(shown: tables.Columns, row: Row) -> str:
    import yaml

    return str(yaml.safe_dump([_named(shown, row)], sort_keys=False))


def _csv(shown: tables.Columns, row: Row) -> str:
    text = io.StringIO()
    csv.writer(
        text, quoting=csv.QUOTE_NONNUMERIC, lineterminator='\n'
    ).writerow(row)
    return text.getvalue()


_LINES: dict[str, Callable[[tables.Columns, Row], str]] = {
    'csv': _csv,
    'json': _json,
    'yaml': _yaml,
}
