# SPDX-License-Identifier: Apache-2.0

"""Deletion of rows in portions, so that no transaction is long."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm


def delete(
    session: orm.Session, table: ty.Any, ids: sa.Select[tuple[int]]
) -> int:
    """Delete the rows whose ids a query returns.

    The ids are read first: MariaDB has no limit in a subquery of a deletion.

    :param table: a model whose key is ``id``.
    :param ids: selects the ids of at most one portion.
    :returns: how many rows the query found.
    """
    found = session.execute(ids).scalars().all()
    if found:
        session.execute(
            sa.delete(table)
            .where(table.id.in_(found))
            .execution_options(synchronize_session=False)
        )
    return len(found)
