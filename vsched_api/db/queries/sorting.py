# SPDX-License-Identifier: Apache-2.0

"""Pages in the order of a key that several rows may have alike.

Rows with the same key are in the order of what identifies them, so that the
last row of a page says where the next one begins. No key is NULL: databases
differ in where they sort it.
"""

import operator
import typing as ty

import sqlalchemy as sa


def ordered(
    query: sa.Select[ty.Any],
    key: sa.ColumnElement[ty.Any],
    identity: sa.ColumnElement[ty.Any],
    descending: bool,
) -> sa.Select[ty.Any]:
    """Return a query in the order of a key.

    :param identity: different in each row.
    """
    columns = [key] if key is identity else [key, identity]
    return query.order_by(
        *(one.desc() if descending else one.asc() for one in columns)
    )


def beyond(
    key: sa.ColumnElement[ty.Any],
    identity: sa.ColumnElement[ty.Any],
    place: tuple[ty.Any, ty.Any],
    descending: bool,
) -> sa.ColumnElement[bool]:
    """Return the condition that a row comes after another one.

    :param place: key and identity of the other one.
    """
    after = operator.lt if descending else operator.gt
    value, name = place
    further: sa.ColumnElement[bool] = after(identity, name)
    if key is identity:
        return further
    return sa.or_(after(key, value), sa.and_(key == value, further))
