# SPDX-License-Identifier: Apache-2.0

"""Rows of hosts."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_row = models.Host


class Progress(ty.NamedTuple):
    """How far the reports of a host have got.

    :param known: it has reported its properties and its instances.
    """

    id: int
    name: str
    last_batch: int
    overrides_generation: int
    jobs_generation: int
    known: bool
    epoch: str | None
    batch_offset: int
    clock_skew_s: float | None


# Made once, and of tables: these are asked a hundred times a second.
_table = ty.cast(sa.Table, _row.__table__)
_NAMED = _table.c.name.in_(sa.bindparam('names', expanding=True))
_LOCK = sa.update(_table).where(_NAMED).values(last_batch=_table.c.last_batch)
_MARIADB_SKIPS_SINCE = (10, 6)
_MYSQL_SKIPS_SINCE = (8, 0)
_PROGRESS = sa.select(
    _table.c.id,
    _table.c.name,
    _table.c.last_batch,
    _table.c.overrides_generation,
    _table.c.jobs_generation,
    sa.case(
        (_table.c.info.is_(sa.null()), False),
        (_table.c.listed_at.is_(None), False),
        else_=True,
    ),
    _table.c.epoch,
    _table.c.batch_offset,
    _table.c.clock_skew_s,
).where(_NAMED)
# A small table MariaDB would scan, and wait for rows of other hosts.
_NOW_FREE = _PROGRESS.with_for_update(skip_locked=True)
for _dialect in ('mysql', 'mariadb'):
    _NOW_FREE = _NOW_FREE.with_hint(
        _table, 'FORCE INDEX (uniq_hosts0name)', _dialect
    )


_BY_NAME = sa.select(_row).where(_row.name == sa.bindparam('name'))
_BY_NAMES = sa.select(_row).where(_NAMED)
_KNOWN = sa.select(_table.c.name).where(_NAMED)
# Rows that refer to the host may be added meanwhile.
_FOR_UPDATE = _BY_NAME.with_for_update(key_share=True)
_THOSE_FREE = _BY_NAMES.with_for_update(key_share=True, skip_locked=True)
for _dialect in ('mysql', 'mariadb'):
    _THOSE_FREE = _THOSE_FREE.with_hint(
        _row, 'FORCE INDEX (uniq_hosts0name)', _dialect
    )


def by_name(session: orm.Session, name: str) -> models.Host | None:
    """The host of that name."""
    return session.execute(_BY_NAME, {'name': name}).scalar_one_or_none()


def existing(session: orm.Session, names: Collection[str]) -> frozenset[str]:
    """Return which of these names are names of hosts; waits for no lock."""
    if not names:
        return frozenset()
    return frozenset(
        session.connection()
        .execute(_KNOWN, {'names': sorted(names)})
        .scalars()
    )


def every(session: orm.Session) -> Sequence[models.Host]:
    """All hosts in the order of their names."""
    return (
        session.execute(
            sa.select(_row)
            .where(_row.deleted_at.is_(None))
            .order_by(_row.name)
        )
        .scalars()
        .all()
    )


def lock(session: orm.Session, name: str) -> models.Host | None:
    """The host of that name, ours alone until the transaction ends.

    On SQLite, which has no SELECT ... FOR UPDATE, the lock is an update that
    changes nothing.
    """
    if session.connection().dialect.name != 'sqlite':
        return session.execute(
            _FOR_UPDATE, {'name': name}
        ).scalar_one_or_none()
    session.connection().execute(_LOCK, {'names': [name]})
    return by_name(session, name)


def lock_those_free(
    session: orm.Session, names: Collection[str]
) -> dict[str, models.Host]:
    """Lock these hosts as :func:`lock` does, unless they are locked.

    :returns: rows by name, without those that other transactions hold; none
        where the database cannot answer without waiting.
    """
    connection = session.connection()
    parameters = {'names': sorted(names)}
    query = _THOSE_FREE
    if connection.dialect.name == 'sqlite':
        # A transaction that writes holds the whole database.
        connection.execute(_LOCK, parameters)
        query = _BY_NAMES
    elif not _skips(connection.dialect):
        return {}
    return {
        row.name: row for row in session.execute(query, parameters).scalars()
    }


def lock_many(
    session: orm.Session, names: Collection[str]
) -> dict[str, Progress]:
    """Lock these hosts as :func:`lock` does, but for those that are busy.

    A host whose row another transaction holds is left out, where the
    database can do that: others must not wait for it.
    """
    connection = session.connection()
    parameters = {'names': sorted(names)}
    if _skips(connection.dialect):
        query = _NOW_FREE
    else:
        connection.execute(_LOCK, parameters)
        query = _PROGRESS
    return {
        row[1]: Progress(*row) for row in connection.execute(query, parameters)
    }


def _skips(dialect: ty.Any) -> bool:
    if dialect.name == 'postgresql':
        return True
    if dialect.name in ('mysql', 'mariadb'):
        return bool(
            dialect.server_version_info
            >= (
                _MARIADB_SKIPS_SINCE
                if dialect.is_mariadb
                else _MYSQL_SKIPS_SINCE
            )
        )
    return False


def advance(
    session: orm.Session,
    batches: Mapping[int, tuple[int, float, float | None]],
    now: float,
) -> None:
    """These batches of these hosts are stored.

    :param batches: stored number and time of each batch, and how far its
        host's clock was ahead, by the host's id.
    """
    values: dict[str, ty.Any] = {'now': now}
    for place, (host_id, (number, at, skew_s)) in enumerate(batches.items()):
        values.update(
            {
                'id%d' % place: host_id,
                'number%d' % place: number,
                'at%d' % place: at,
                'skew%d' % place: skew_s,
            }
        )
    session.connection().execute(_advance(len(batches)), values)


# In one statement: on PostgreSQL each of many would wait for its answer.
@functools.cache
def _advance(count: int) -> sa.Update:
    def by_host(column: str, name: str) -> sa.ColumnElement[ty.Any]:
        kind = _table.c[column].type
        return sa.case(
            *(
                (
                    _table.c.id == sa.bindparam('id%d' % place),
                    sa.bindparam('%s%d' % (name, place), type_=kind),
                )
                for place in range(count)
            ),
            # PostgreSQL takes a CASE of nothing but NULL for text.
            else_=_table.c[column],
        )

    updated = sa.update(_table)
    for dialect in ('mysql', 'mariadb'):
        updated = updated.with_hint(
            'FORCE INDEX (PRIMARY)', dialect_name=dialect
        )
    return updated.where(
        _table.c.id.in_(
            [sa.bindparam('id%d' % place) for place in range(count)]
        )
    ).values(
        received_at=sa.bindparam('now'),
        last_batch=by_host('last_batch', 'number'),
        reported_at=by_host('reported_at', 'at'),
        clock_skew_s=by_host('clock_skew_s', 'skew'),
    )


def new(name: str) -> models.Host:
    """Return the row of a host of which nothing is known yet.

    It is not added: see :func:`add_all`.
    """
    return models.Host(
        name=name,
        last_batch=0,
        overrides_generation=0,
        jobs_generation=0,
        batch_offset=0,
    )


def add(session: orm.Session, name: str) -> models.Host:
    """Add a host of which nothing is known yet."""
    row = new(name)
    add_all(session, [row])
    return row


def add_all(session: orm.Session, rows: Collection[models.Host]) -> None:
    """Add new rows in one statement; they have their ids afterwards."""
    if rows:
        session.add_all(rows)
        session.flush()


def set_overrides_generation(
    session: orm.Session, host_ids: Iterable[int], generation: int
) -> None:
    """Let these hosts' agents know that their overrides changed."""
    session.execute(
        sa.update(_row)
        .where(_row.id.in_(sorted(host_ids)))
        .values(overrides_generation=generation)
        .execution_options(synchronize_session=False)
    )


def next_jobs_generation(
    session: orm.Session, name: str
) -> models.Host | None:
    """Let a host's agent know that its jobs changed.

    The first statement of every transaction that changes what operators
    want of a host: it holds the host's row, as :func:`lock` does.

    :returns: the host with its new generation.
    """
    changed = session.execute(
        sa.update(_row)
        .where(_row.name == name)
        .values(jobs_generation=_row.jobs_generation + 1)
        .execution_options(synchronize_session=False)
    )
    if not changed.rowcount:  # type: ignore[attr-defined]
        return None
    return by_name(session, name)
