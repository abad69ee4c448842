# SPDX-License-Identifier: Apache-2.0

"""Rows of balloons that were, or are."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import instances
from vsched_api.db.queries import portions
from vsched_api.db.queries import series

_row = models.BalloonChange


class Found(ty.NamedTuple):
    """A balloon and the host that made it."""

    change: models.BalloonChange
    host: str


def position(session: orm.Session, uuid: str) -> series.Position | None:
    """Where in the order one is."""
    return series.position(session, _row, _row.started_at, _row.uuid == uuid)


def page(
    session: orm.Session,
    limit: int,
    after: series.Position | None = None,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    outcomes: Collection[str] = (),
    start: float | None = None,
    end: float | None = None,
    **server: str | None,
) -> Sequence[Found]:
    """Balloons, newest first.

    :param after: the position of the last one of the page before.
    :param start: of its begin, in seconds since the epoch, inclusive.
    :param end: the same, exclusive.
    :param server: as for :func:`instances.uuids`.
    """
    query = series.happened(
        series.page(_row, _row.started_at, limit, after, True, host),
        _row.started_at,
        start,
        end,
    )
    for one in instances.among(_row.instance_uuid, instance_uuids, **server):
        query = query.where(one)
    if outcomes:
        query = query.where(_row.outcome.in_(outcomes))
    return [Found(*row) for row in session.execute(query)]


def put(
    session: orm.Session,
    host_id: int,
    changes: Mapping[str, Mapping[str, ty.Any]],
    now: float,
) -> None:
    """Store a host's changes, by UUID, over those it reported before.

    Those that another host reported stay as they are.
    """
    if not changes:
        return
    rows = {
        row.uuid: row
        for row in session.execute(
            sa.select(_row).where(_row.uuid.in_(changes))
        ).scalars()
    }
    added = []
    for uuid, values in changes.items():
        row = rows.get(uuid)
        if row is None:
            added.append(
                {'uuid': uuid, 'host_id': host_id, 'told_at': now, **values}
            )
        elif row.host_id == host_id:
            row.told_at = now
            for name, value in values.items():
                setattr(row, name, value)
    if added:
        session.execute(sa.insert(_row), added)
    session.flush()


def close(
    session: orm.Session,
    host_id: int,
    instance_uuids: Collection[str],
    at: float,
    outcome: str,
    detail: str,
) -> None:
    """End those of these instances that still last."""
    session.execute(
        sa.update(_row)
        .where(
            _row.host_id == host_id,
            _row.ended_at.is_(None),
            _row.instance_uuid.in_(sorted(instance_uuids)),
        )
        .values(ended_at=at, outcome=outcome, detail=detail)
        .execution_options(synchronize_session=False)
    )


def delete_before(session: orm.Session, before: float, limit: int) -> int:
    """Delete those that were not reported for longest.

    :returns: how many went; fewer than ``limit`` when none is left.
    """
    return portions.delete(
        session,
        _row,
        sa.select(_row.id)
        .where(_row.told_at < before)
        .order_by(_row.told_at)
        .limit(limit),
    )
