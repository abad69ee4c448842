# SPDX-License-Identifier: Apache-2.0

"""Pages in the order of a key that several rows may have alike.

Rows with the same key are in the order of what identifies them, so that the
last row of a page says where the next one begins. No key is NULL: databases
differ in where they sort it.
"""

import operator
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

#: Where in the order a row is: its key, and what identifies it.
Position = tuple[ty.Any, str]


def position(
    session: orm.Session,
    query: sa.Select[ty.Any],
    key: sa.ColumnElement[ty.Any],
    identity: sa.ColumnElement[str],
    name: str,
) -> Position | None:
    """Return where in the order a row is; None when the query has no such row.

    :param key: what the rows are sorted by.
    :param identity: different in each row.
    :param name: the identity of the row.
    """
    if key is identity:
        # The row may have been deleted since its page was read.
        return name, name
    found = session.execute(
        query.with_only_columns(key).where(identity == name)
    ).first()
    return None if found is None else (found[0], name)


def page(
    query: sa.Select[ty.Any],
    key: sa.ColumnElement[ty.Any],
    identity: sa.ColumnElement[str],
    limit: int,
    after: Position | None,
    descending: bool,
) -> sa.Select[ty.Any]:
    """Return a query of the rows of one page, in the order of a key.

    :param identity: different in each row.
    :param after: the position of the last one of the page before.
    """
    columns = [key] if key is identity else [key, identity]
    query = query.order_by(
        *(one.desc() if descending else one.asc() for one in columns)
    ).limit(limit)
    if after is None:
        return query
    return query.where(_beyond(key, identity, after, descending))


def _beyond(
    key: sa.ColumnElement[ty.Any],
    identity: sa.ColumnElement[str],
    position: Position,
    descending: bool,
) -> sa.ColumnElement[bool]:
    """Return the condition that a row comes after a position."""
    after = operator.lt if descending else operator.gt
    value, name = position
    further: sa.ColumnElement[bool] = after(identity, name)
    if key is identity:
        return further
    return sa.or_(after(key, value), sa.and_(key == value, further))
