# SPDX-License-Identifier: Apache-2.0

"""Rows of what the CPUs of hosts did."""

from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import series

_row = models.HostTimeSample
_table = ty.cast(sa.Table, _row.__table__)
_insert = _table.insert()


class New(ty.NamedTuple):
    """A sample as it comes; what a row has besides host and batch."""

    at: float
    interval_us: int
    cpus: int
    idle_us: int
    steal_us: int
    irq_us: int
    guest_us: int
    direct_us: int
    shared_us: int
    own_us: int


_OF_BATCHES = sa.select(*(_table.c[name] for name in New._fields)).where(
    _table.c.host_id == sa.bindparam('host_id'),
    _table.c.batch > sa.bindparam('after'),
    _table.c.batch <= sa.bindparam('last'),
)


class Found(ty.NamedTuple):
    """A sample and the host it is from."""

    sample: models.HostTimeSample
    host: str


def page(
    session: orm.Session,
    limit: int,
    after: series.Position | None = None,
    newest_first: bool = False,
    host: str | None = None,
    start: float | None = None,
    end: float | None = None,
) -> Sequence[Found]:
    """Samples in the order of time.

    :param after: time and id of the last one of the page before.
    :param start: seconds since the epoch; a sample counts when its
        interval ends after it.
    :param end: seconds since the epoch, inclusive.
    """
    query = series.ended(
        series.page(_row, _row.at, limit, after, newest_first, host),
        _row.at,
        start,
        end,
    )
    return [Found(*row) for row in session.execute(query)]


def position(session: orm.Session, number: int) -> series.Position | None:
    """Where in the order a sample is."""
    return series.position(session, _row, _row.at, _row.id == number)


def add(
    session: orm.Session, batches: Mapping[tuple[int, int], Sequence[New]]
) -> None:
    """Store samples, by the id of their host and their batch."""
    rows = [
        {'host_id': host_id, 'batch': batch, **sample._asdict()}
        for (host_id, batch), samples in batches.items()
        for sample in samples
    ]
    if rows:
        session.connection().execute(_insert, rows)


def of_batches(
    session: orm.Session, host_id: int, after: int, last: int
) -> list[New]:
    """Samples of batches of a host.

    :param after: the batch before them.
    """
    return [
        New(*row)
        for row in session.connection().execute(
            _OF_BATCHES, {'host_id': host_id, 'after': after, 'last': last}
        )
    ]
