# SPDX-License-Identifier: Apache-2.0

"""Rows of the comparisons of hosts' reports with Nova and placement."""

from collections.abc import Collection
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_row = models.HostVerification
_host = models.Host
_instance = models.Instance


def of_host(
    session: orm.Session, host_id: int
) -> models.HostVerification | None:
    """Return the row of a host."""
    return session.get(_row, host_id)


def of_hosts(
    session: orm.Session, host_ids: Collection[int] | None = None
) -> dict[int, models.HostVerification]:
    """Return rows by the host's id.

    :param host_ids: only of these hosts; None for all.
    """
    query = sa.select(_row)
    if host_ids is not None:
        query = query.where(_row.host_id.in_(host_ids))
    return {row.host_id: row for row in session.execute(query).scalars()}


def due(
    session: orm.Session,
    reported_after: float,
    checked_before: float,
    now: float,
    limit: int,
) -> Sequence[str]:
    """Return names of hosts that report and whose comparison is old.

    :param now: comparisons after it, by another clock, count as old.
    :returns: those first that were never compared, then the oldest.
    """
    checked_at = sa.func.coalesce(_row.checked_at, 0.0)
    return (
        session.execute(
            sa.select(_host.name)
            .outerjoin(_row, _row.host_id == _host.id)
            .where(
                _host.deleted_at.is_(None),
                _host.info.is_not(None),
                _host.received_at >= reported_after,
                sa.or_(checked_at < checked_before, checked_at > now),
            )
            .order_by(checked_at, _host.id)
            .limit(limit)
        )
        .scalars()
        .all()
    )


def lapsed(
    session: orm.Session, checked_before: float, limit: int
) -> Sequence[str]:
    """Return names of hosts with contradictions of too old a comparison.

    These are contradictions of instances.
    """
    return (
        session.execute(
            sa.select(_host.name)
            .join(_row, _row.host_id == _host.id)
            .where(
                _row.checked_at < checked_before,
                sa.exists().where(
                    _instance.host_id == _host.id,
                    _instance.contradicted_at.is_not(None),
                ),
            )
            .order_by(_host.id)
            .limit(limit)
        )
        .scalars()
        .all()
    )
