# SPDX-License-Identifier: Apache-2.0

"""Rows that say which samples are in the buckets."""

from collections.abc import Sequence
import functools
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import portions

_row = models.UsageFold

# Made once: each host is folded every minute.
_table = ty.cast(sa.Table, _row.__table__)
_hosts = ty.cast(sa.Table, models.Host.__table__)
_OF_HOST = _table.c.host_id == sa.bindparam('of_host')
_LOCK = sa.update(_table).where(_OF_HOST).values(batch=_table.c.batch)
_PUT = sa.update(_table).where(_OF_HOST).values(batch=sa.bindparam('upto'))
_PROGRESS = (
    sa.select(_table.c.batch, _hosts.c.last_batch)
    .join_from(_table, _hosts, _hosts.c.id == _table.c.host_id)
    .where(_OF_HOST)
)

#: What is folded.
Kind = type[models.UsageSecond] | type[models.HostTimeSample]


def waiting(session: orm.Session) -> Sequence[int]:
    """The ids of the hosts that have reported since they were folded."""
    return (
        session.execute(
            sa.select(models.Host.id)
            .outerjoin(_row, _row.host_id == models.Host.id)
            .where(models.Host.last_batch > sa.func.coalesce(_row.batch, 0))
            .order_by(models.Host.id)
        )
        .scalars()
        .all()
    )


def lock(session: orm.Session, host_id: int) -> tuple[int, int]:
    """Let nobody else fold this host until the transaction ends.

    :returns: the last batch that is folded, and the last one stored.
    """
    connection, of_host = session.connection(), {'of_host': host_id}
    if not connection.execute(_LOCK, of_host).rowcount:
        connection.execute(_table.insert(), [{'host_id': host_id, 'batch': 0}])
    found = connection.execute(_PROGRESS, of_host).one()
    return found[0], found[1]


def put(session: orm.Session, host_id: int, batch: int) -> None:
    """Everything of this host is folded up to this batch."""
    session.connection().execute(_PUT, {'of_host': host_id, 'upto': batch})


def sizes(
    session: orm.Session,
    kind: Kind,
    host_id: int,
    after: int,
    last: int,
    limit: int,
) -> dict[int, int]:
    """How many samples the next batches of a host have, in their order.

    :param after: the batch before them.
    :param last: the last one that counts.
    :param limit: how many batches at most.
    """
    return {
        batch: int(count)
        for batch, count in session.connection().execute(
            _sizes(kind),
            {'of_host': host_id, 'after': after, 'last': last, 'most': limit},
        )
    }


@functools.cache
def _sizes(kind: Kind) -> sa.Select[ty.Any]:
    row = ty.cast(sa.Table, kind.__table__).c
    size = (
        sa.func.sum(row['count'])
        if kind is models.UsageSecond
        else sa.func.count()
    )
    return (
        sa.select(row.batch, size)
        .where(
            row.host_id == sa.bindparam('of_host'),
            row.batch > sa.bindparam('after'),
            row.batch <= sa.bindparam('last'),
        )
        .group_by(row.batch)
        .order_by(row.batch)
        .limit(sa.bindparam('most'))
    )


def delete_before(
    session: orm.Session, kind: Kind, before: float, limit: int
) -> int:
    """Delete the oldest rows, but none that is in no bucket yet.

    :returns: how many went; fewer than ``limit`` when none is left.
    """
    row: ty.Any = kind
    return portions.delete(
        session,
        row,
        sa.select(row.id)
        .outerjoin(_row, _row.host_id == row.host_id)
        .where(row.at < before, row.batch <= sa.func.coalesce(_row.batch, 0))
        .order_by(row.at)
        .limit(limit),
    )
