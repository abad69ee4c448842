# SPDX-License-Identifier: Apache-2.0

"""Rows that say which samples are in the buckets."""

from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_row = models.UsageFold

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
    locked = session.execute(
        sa.update(_row)
        .where(_row.host_id == host_id)
        .values(batch=_row.batch)
        .execution_options(synchronize_session=False)
    )
    if not locked.rowcount:  # type: ignore[attr-defined]
        session.execute(sa.insert(_row), [{'host_id': host_id, 'batch': 0}])
    found = session.execute(
        sa.select(_row.batch, models.Host.last_batch)
        .join(models.Host, models.Host.id == _row.host_id)
        .where(_row.host_id == host_id)
    ).one()
    return found[0], found[1]


def put(session: orm.Session, host_id: int, batch: int) -> None:
    """Everything of this host is folded up to this batch."""
    session.execute(
        sa.update(_row)
        .where(_row.host_id == host_id)
        .values(batch=batch)
        .execution_options(synchronize_session=False)
    )


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
    row: ty.Any = kind
    size = (
        sa.func.sum(row.count)
        if row is models.UsageSecond
        else sa.func.count()
    )
    return {
        batch: int(count)
        for batch, count in session.execute(
            sa.select(row.batch, size)
            .where(
                row.host_id == host_id, row.batch > after, row.batch <= last
            )
            .group_by(row.batch)
            .order_by(row.batch)
            .limit(limit)
        )
    }


def delete_before(
    session: orm.Session, kind: Kind, before: float, limit: int
) -> int:
    """Delete the oldest rows, but none that is in no bucket yet.

    :returns: how many went; fewer than ``limit`` when none is left.
    """
    row: ty.Any = kind
    ids = (
        session.execute(
            sa.select(row.id)
            .outerjoin(_row, _row.host_id == row.host_id)
            .where(
                row.at < before, row.batch <= sa.func.coalesce(_row.batch, 0)
            )
            .order_by(row.at)
            .limit(limit)
        )
        .scalars()
        .all()
    )
    if ids:
        session.execute(
            sa.delete(row)
            .where(row.id.in_(ids))
            .execution_options(synchronize_session=False)
        )
    return len(ids)
