# SPDX-License-Identifier: Apache-2.0

"""Rows of sums of usage: of instances, of all of a host, of its CPUs."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import typing as ty

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import instances
from vsched_api.db.queries import portions
from vsched_api.db.queries import series

_row = models.UsageBucket

Kind = (
    type[models.UsageBucket]
    | type[models.HostUsageBucket]
    | type[models.HostTimeBucket]
)

_KEYS: dict[ty.Any, tuple[str, ...]] = {
    _row: ('host_id', 'length_s', 'at', 'instance_uuid'),
    models.HostUsageBucket: ('host_id', 'length_s', 'at'),
    models.HostTimeBucket: ('host_id', 'length_s', 'at'),
}

#: The widest sum that a column takes.
MAX_SUM = 2**63 - 1


class Sums(ty.NamedTuple):
    """The columns of a bucket that are not its name."""

    samples: int
    first_at: float
    last_at: float
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None
    promised_guest_us: int
    direct_us: int
    direct_wait_us: int
    shared_us: int
    wakeups: int
    net_rx_packets: int
    net_tx_packets: int
    disk_read_requests: int
    disk_write_requests: int
    counted_samples: int
    executions: int
    emulator_wakeups: int
    emulator_wait_us: int
    iothread_wakeups: int
    iothread_wait_us: int
    vhost_wakeups: int
    vhost_wait_us: int


class TimeSums(ty.NamedTuple):
    """Likewise of a bucket of what the CPUs of a host did."""

    samples: int
    first_at: float
    last_at: float
    interval_us: int
    cpu_us: int
    idle_us: int
    steal_us: int
    irq_us: int
    guest_us: int
    direct_us: int
    shared_us: int
    own_us: int


def _known(row: ty.Any, *names: str) -> sa.Select[ty.Any]:
    columns = ty.cast(sa.Table, row.__table__).c
    return sa.select(*(columns[name] for name in names)).where(
        columns.host_id == sa.bindparam('host_id'),
        columns.length_s == sa.bindparam('length_s'),
        columns.at.in_(sa.bindparam('ends', expanding=True)),
    )


# Made once: each host is folded every minute.
_OF_HOST = _known(_row, 'at', 'instance_uuid', *Sums._fields)
_OF_CPUS = _known(models.HostTimeBucket, 'at', *TimeSums._fields)

#: Of an instance: end and length of the bucket, and the instance's UUID.
Key = tuple[float, int, str]


class Found(ty.NamedTuple):
    """A bucket and the host it is of."""

    bucket: models.UsageBucket | models.HostUsageBucket | models.HostTimeBucket
    host: str


def page(
    session: orm.Session,
    kind: Kind,
    length_s: int,
    limit: int,
    after: series.Position | None = None,
    newest_first: bool = False,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    start: float | None = None,
    end: float | None = None,
    **server: str | None,
) -> Sequence[Found]:
    """Buckets of one length in the order of time.

    :param instance_uuids: none for all; only when the kind is of instances.
    :param after: time and id of the last one of the page before.
    :param start: seconds since the epoch; a bucket counts when it ends
        after it.
    :param end: seconds since the epoch, inclusive.
    :param server: as for :func:`instances.uuids`, likewise.
    """
    row: ty.Any = kind
    query = series.ended(
        series.page(row, row.at, limit, after, newest_first, host),
        row.at,
        start,
        end,
    ).where(row.length_s == length_s)
    for one in instances.among(
        # Without the column a filter fails, rather than to be left out.
        getattr(row, 'instance_uuid', None),
        instance_uuids,
        **server,
    ):
        query = query.where(one)
    return [Found(*found) for found in session.execute(query)]


def position(
    session: orm.Session,
    kind: Kind,
    number: int,
    length_s: int,
    instance_uuids: Collection[str] = (),
    **server: str | None,
) -> series.Position | None:
    """Where in the order of its series a bucket is."""
    row: ty.Any = kind
    query = sa.select(row.at, row.id).where(
        row.id == number, row.length_s == length_s
    )
    for one in instances.among(
        # Without the column a filter fails, rather than to be left out.
        getattr(row, 'instance_uuid', None),
        instance_uuids,
        **server,
    ):
        query = query.where(one)
    found = session.execute(query).first()
    return None if found is None else (found[0], found[1])


def of_host(
    session: orm.Session, host_id: int, length_s: int, ends: Collection[float]
) -> dict[Key, Sums]:
    """The instances' buckets of one length that end at these moments."""
    return {
        (at, length_s, uuid): Sums(*sums)
        for at, uuid, *sums in session.connection().execute(
            _OF_HOST,
            {'host_id': host_id, 'length_s': length_s, 'ends': list(ends)},
        )
    }


def of_cpus(
    session: orm.Session, host_id: int, length_s: int, ends: Collection[float]
) -> dict[float, TimeSums]:
    """What a host's CPUs did, by the moment at which the bucket ends."""
    return {
        at: TimeSums(*sums)
        for at, *sums in session.connection().execute(
            _OF_CPUS,
            {'host_id': host_id, 'length_s': length_s, 'ends': list(ends)},
        )
    }


def put(
    session: orm.Session, kind: Kind, rows: Sequence[Mapping[str, ty.Any]]
) -> None:
    """Store buckets, over what is there of the same name."""
    if not rows:
        return
    connection = session.connection()
    connection.execute(
        _upsert(connection.dialect, kind, len(rows) > 1), list(rows)
    )


# SQLAlchemy keeps no compiled form of these by itself, and compiling one
# costs more than storing what it stores.
@functools.lru_cache(maxsize=32)
def _upsert(dialect: sa.Dialect, kind: Kind, many: bool) -> ty.Any:
    statement = _over(dialect.name, kind)
    table = ty.cast(sa.Table, kind.__table__)
    return statement.compile(
        dialect=dialect,
        for_executemany=many,
        column_keys=[
            column.name for column in table.columns if column.name != 'id'
        ],
    )


def _over(dialect: str, kind: Kind) -> ty.Any:
    table = ty.cast(sa.Table, kind.__table__)
    key = _KEYS[kind]
    changed = [
        column.name
        for column in table.columns
        if column.name not in ('id', *key)
    ]
    if dialect in ('mysql', 'mariadb'):
        put_over = mysql.insert(table)
        return put_over.on_duplicate_key_update(
            {name: put_over.inserted[name] for name in changed}
        )
    other: ty.Any = postgresql if dialect == 'postgresql' else sqlite
    statement = other.insert(table)
    # What it returns nobody needs; but SQLAlchemy then sends all rows in
    # one statement, not each in its own.
    return statement.on_conflict_do_update(
        index_elements=key,
        set_={name: statement.excluded[name] for name in changed},
    ).returning(table.c.id)


def delete_before(
    session: orm.Session, kind: Kind, length_s: int, before: float, limit: int
) -> int:
    """Delete the oldest buckets of one length.

    :returns: how many went; fewer than ``limit`` when none is left.
    """
    row: ty.Any = kind
    return portions.delete(
        session,
        row,
        sa.select(row.id)
        .where(row.length_s == length_s, row.at < before)
        .order_by(row.at)
        .limit(limit),
    )
