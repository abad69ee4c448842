# SPDX-License-Identifier: Apache-2.0

"""Rows in the order of a moment, page by page, and what hosts they are of."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

#: Where in the order a row is: its moment, in seconds since the epoch, and
#: its id, for there may be several of one moment.
Position = tuple[float, int]


def position(
    session: orm.Session,
    kind: ty.Any,
    moment: ty.Any,
    key: sa.ColumnElement[bool],
) -> Position | None:
    """Where in the order a row is; None without such a row.

    :param moment: the column they are in the order of.
    :param key: selects the row.
    """
    found = session.execute(sa.select(moment, kind.id).where(key)).first()
    return None if found is None else (found[0], found[1])


def page(
    kind: ty.Any,
    moment: ty.Any,
    limit: int,
    after: Position | None,
    newest_first: bool,
    host: str | None,
) -> sa.Select[ty.Any]:
    """Rows of a table, each with the name of its host.

    :param moment: the column they are in the order of.
    :param after: the position of the last one of the page before.
    :param host: only of the host of this name.
    """
    query = (
        sa.select(kind, models.Host.name)
        .join(models.Host, models.Host.id == kind.host_id)
        .where(models.Host.deleted_at.is_(None))
        .limit(limit)
    )
    if newest_first:
        query = query.order_by(moment.desc(), kind.id.desc())
    else:
        query = query.order_by(moment, kind.id)
    if after is not None:
        at, number = after
        query = query.where(
            sa.or_(moment < at, sa.and_(moment == at, kind.id < number))
            if newest_first
            else sa.or_(moment > at, sa.and_(moment == at, kind.id > number))
        )
    if host is not None:
        query = query.where(models.Host.name == host)
    return query


def happened(
    query: sa.Select[ty.Any],
    moment: ty.Any,
    start: float | None,
    end: float | None,
) -> sa.Select[ty.Any]:
    """Only rows whose moment is from ``start`` on and before ``end``.

    :param start: seconds since the epoch; so is ``end``.
    """
    if start is not None:
        query = query.where(moment >= start)
    if end is not None:
        query = query.where(moment < end)
    return query


def ended(
    query: sa.Select[ty.Any],
    moment: ty.Any,
    start: float | None,
    end: float | None,
) -> sa.Select[ty.Any]:
    """Only rows of intervals that ended after ``start`` and by ``end``.

    :param moment: the end of the interval.
    :param start: seconds since the epoch; so is ``end``.
    """
    if start is not None:
        query = query.where(moment > start)
    if end is not None:
        query = query.where(moment <= end)
    return query
