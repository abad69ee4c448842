# SPDX-License-Identifier: Apache-2.0

"""Rows of events."""

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

_row = models.Event


class Found(ty.NamedTuple):
    """An event and the host it is from."""

    event: models.Event
    host: str


def position(session: orm.Session, uuid: str) -> series.Position | None:
    """Where in the order an event is."""
    return series.position(session, _row, _row.at, _row.uuid == uuid)


def page(
    session: orm.Session,
    limit: int,
    after: series.Position | None = None,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    severity: str | None = None,
    code: str | None = None,
    start: float | None = None,
    end: float | None = None,
    **server: str | None,
) -> Sequence[Found]:
    """Events, newest first.

    :param after: the position of the last one of the page before.
    :param start: seconds since the epoch, inclusive.
    :param end: seconds since the epoch, exclusive.
    :param server: as for :func:`instances.uuids`.
    """
    query = series.happened(
        series.page(_row, _row.at, limit, after, True, host),
        _row.at,
        start,
        end,
    )
    for one in instances.among(_row.instance_uuid, instance_uuids, **server):
        query = query.where(one)
    if severity is not None:
        query = query.where(_row.severity == severity)
    if code is not None:
        query = query.where(_row.code == code)
    return [Found(*row) for row in session.execute(query)]


def add(session: orm.Session, events: Sequence[Mapping[str, ty.Any]]) -> int:
    """Store events; one that is stored already stays as it is.

    :returns: how many were new.
    """
    by_uuid = {event['uuid']: event for event in reversed(events)}
    if not by_uuid:
        return 0
    for known in session.execute(
        sa.select(_row.uuid).where(_row.uuid.in_(by_uuid))
    ).scalars():
        del by_uuid[known]
    if by_uuid:
        # In the order they were reported: that is also the order of their ids.
        session.execute(sa.insert(_row), list(reversed(by_uuid.values())))
    return len(by_uuid)


def delete_before(session: orm.Session, before: float, limit: int) -> int:
    """Delete the oldest events.

    :returns: how many went; fewer than ``limit`` when none is left.
    """
    return portions.delete(
        session,
        _row,
        sa.select(_row.id)
        .where(_row.at < before)
        .order_by(_row.at)
        .limit(limit),
    )
