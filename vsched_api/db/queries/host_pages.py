# SPDX-License-Identifier: Apache-2.0

"""Pages of hosts, filtered and sorted."""

from collections.abc import Mapping
from collections.abc import Sequence
import types
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import sorting

_row = models.Host
_snapshot = models.SnapshotHost
_name: sa.ColumnElement[str] = ty.cast(sa.Table, _row.__table__).c.name

#: What pages may be sorted by.
SORT_KEYS: Mapping[str, sa.ColumnElement[ty.Any]] = types.MappingProxyType(
    {
        'name': _name,
        # None before the first report, as is its row of the snapshot.
        'last_report_at': sa.func.coalesce(_row.received_at, 0.0),
        'admitted_mcpu': sa.func.coalesce(_snapshot.admitted_mcpu, 0),
    }
)


class Filter(ty.NamedTuple):
    """Which hosts are listed.

    :param up: whether they have reported since ``since``.
    :param prefix: what their names begin with.
    :param backend: one that they can use, as they report it.
    """

    since: float = 0.0
    up: bool | None = None
    prefix: str | None = None
    backend: str | None = None


ALL = Filter()


def page(
    session: orm.Session,
    limit: int,
    after: sorting.Position | None = None,
    wanted: Filter = ALL,
    sort_key: str = 'name',
    descending: bool = False,
) -> Sequence[models.Host]:
    """Hosts in an order, those after a position.

    :param after: the position of the last one of the page before.
    :param sort_key: one of :data:`SORT_KEYS`.
    """
    query = sorting.page(
        _listed(), SORT_KEYS[sort_key], _name, limit, after, descending
    )
    if wanted.up is not None:
        reports = sa.func.coalesce(_row.received_at, 0.0) >= wanted.since
        query = query.where(reports if wanted.up else ~reports)
    if wanted.prefix is not None:
        # Not LIKE, which SQLite compares without regard to case.
        query = query.where(
            sa.func.substr(_name, 1, len(wanted.prefix)) == wanted.prefix
        )
    if wanted.backend is not None:
        # The facts have no other words than the backends that can be used.
        query = query.where(
            _snapshot.facts.contains('"%s"' % wanted.backend, autoescape=True)
        )
    return session.execute(query).scalars().all()


def position(
    session: orm.Session, name: str, sort_key: str
) -> sorting.Position | None:
    """Where in the order a host is.

    :param sort_key: one of :data:`SORT_KEYS`.
    """
    return sorting.position(
        session, _listed(), SORT_KEYS[sort_key], _name, name
    )


def _listed() -> sa.Select[ty.Any]:
    return (
        sa.select(_row)
        .outerjoin(_snapshot, _snapshot.host_id == _row.id)
        .where(_row.deleted_at.is_(None))
    )
