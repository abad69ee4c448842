# SPDX-License-Identifier: Apache-2.0

"""Deletion of hosts, and of the rows that belong to them."""

from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import portions

_host = models.Host


def deleted(session: orm.Session) -> Sequence[tuple[int, float]]:
    """Ids of the hosts that are deleted and not gone, and since when."""
    return [
        (number, at)
        for number, at in session.execute(
            sa.select(_host.id, _host.deleted_at)
            .where(_host.deleted_at.is_not(None))
            .order_by(_host.id)
        )
    ]


def absent(session: orm.Session, before: float, limit: int) -> Sequence[str]:
    """Names of the hosts whose last report came before a time."""
    return (
        session.execute(
            sa.select(_host.name)
            .where(
                _host.deleted_at.is_(None),
                sa.func.coalesce(_host.received_at, 0.0) < before,
            )
            .order_by(_host.received_at)
            .limit(limit)
        )
        .scalars()
        .all()
    )


# Whatever has a host, in an order in which it can be deleted. Points,
# reservations and balloons go with what they belong to.
_OWNED: tuple[ty.Any, ...] = (
    models.UsageSecond,
    models.HostTimeSample,
    models.UsageBucket,
    models.HostUsageBucket,
    models.HostTimeBucket,
    models.Event,
    models.Job,
    models.BalloonChange,
    models.ErrorProfile,
    models.OverheadProfile,
    models.Instance,
)


def delete_owned(session: orm.Session, host_id: int, limit: int) -> int:
    """Delete rows of a deleted host.

    :returns: how many went; fewer than ``limit`` when none is left.
    """
    total = 0
    for row in _OWNED:
        total += portions.delete(
            session,
            row,
            sa.select(row.id)
            .where(row.host_id == host_id)
            .limit(limit - total),
        )
        if total >= limit:
            break
    return total


def delete(session: orm.Session, host_id: int) -> None:
    """Delete a host that owns nothing any more."""
    for row, key in (
        (models.UsageFold, models.UsageFold.host_id),
        (models.SnapshotHost, models.SnapshotHost.host_id),
        (models.HostVerification, models.HostVerification.host_id),
        (_host, _host.id),
    ):
        session.execute(
            sa.delete(row)
            .where(key == host_id)
            .execution_options(synchronize_session=False)
        )
