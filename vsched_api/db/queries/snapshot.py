# SPDX-License-Identifier: Apache-2.0

"""Rows of the snapshot of hosts that schedulers use."""

from collections.abc import Collection
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_row = models.SnapshotHost
_host = models.Host


class Row(ty.NamedTuple):
    """One host, its texts as they are sent."""

    name: str
    version: int
    removed: bool
    admitted_mcpu: int
    facts: str
    certificates: str
    certified: bool
    prices_ns: str | None


# As many values as every database takes in one statement.
_AT_ONCE = 500

_COLUMNS = sa.select(*(getattr(_row, name) for name in Row._fields))


def of_host(session: orm.Session, host_id: int) -> models.SnapshotHost | None:
    """The entry of one host."""
    return session.get(_row, host_id)


def newest_version(session: orm.Session) -> int:
    """The version of the last change; 0 when there is none."""
    return (
        session.execute(sa.select(sa.func.max(_row.version))).scalar_one() or 0
    )


def present(
    session: orm.Session, names: Collection[str] | None = None
) -> Sequence[Row]:
    """All hosts that are not removed, or those of these names."""
    query = _COLUMNS.where(_row.removed.is_(False)).order_by(_row.version)
    if names is not None:
        query = query.where(_row.name.in_(names))
    return _all(session, query)


def changed(session: orm.Session, since: int, limit: int) -> Sequence[Row]:
    """Hosts that changed after a version, in the order of their changes."""
    return _all(
        session,
        _COLUMNS.where(_row.version > since)
        .order_by(_row.version)
        .limit(limit),
    )


def _all(session: orm.Session, query: sa.Select[ty.Any]) -> Sequence[Row]:
    # Ten thousand wide rows in one answer: past what the session would make
    # of each, of which nothing is used here.
    found = session.connection().execute(query)
    return list(map(Row._make, found))


def down(session: orm.Session, before: float) -> Sequence[str]:
    """Names of the hosts whose last report came before a time, sorted."""
    # Read all the time, from tables with wide rows: first which are silent,
    # normally few, and only then which of those have an entry.
    ids = (
        session.execute(sa.select(_host.id).where(_silent(before)))
        .scalars()
        .all()
    )
    names: list[str] = []
    for start in range(0, len(ids), _AT_ONCE):
        names += session.execute(
            sa.select(_row.name).where(
                _row.host_id.in_(ids[start : start + _AT_ONCE]),
                _row.removed.is_(False),
            )
        ).scalars()
    return sorted(names)


def missing(
    session: orm.Session, after: float, beyond: int, limit: int
) -> Sequence[tuple[int, str]]:
    """Hosts without an entry, or that are removed and report again.

    :param after: their last report came at this time or later.
    :param beyond: only those with a higher id.
    :returns: ids and names, in the order of ids.
    """
    return [
        (number, name)
        for number, name in session.execute(
            sa.select(_host.id, _host.name)
            .outerjoin(_row, _row.host_id == _host.id)
            .where(
                _host.id > beyond,
                _host.info.is_not(None),
                ~_silent(after),
                sa.or_(_row.host_id.is_(None), _row.removed.is_(True)),
            )
            .order_by(_host.id)
            .limit(limit)
        )
    ]


def silent(
    session: orm.Session, before: float, limit: int
) -> Sequence[models.SnapshotHost]:
    """Hosts to be removed: their last report came before a time."""
    return (
        session.execute(
            sa.select(_row)
            .join(_host, _host.id == _row.host_id)
            .where(_row.removed.is_(False), _silent(before))
            .order_by(_row.host_id)
            .limit(limit)
        )
        .scalars()
        .all()
    )


def _silent(before: float) -> sa.ColumnElement[bool]:
    return sa.func.coalesce(_host.received_at, 0.0) < before
