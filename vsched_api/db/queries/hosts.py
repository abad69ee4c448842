# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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

    :param known: it has told what it is, and which instances it has.
    """

    id: int
    name: str
    last_batch: int
    overrides_generation: int
    jobs_generation: int
    known: bool


# Made once, and of tables: these are asked a hundred times a second.
_table = ty.cast(sa.Table, _row.__table__)
_NAMED = _table.c.name.in_(sa.bindparam('names', expanding=True))
_LOCK = sa.update(_table).where(_NAMED).values(
    last_batch=_table.c.last_batch)
_PROGRESS = sa.select(
    _table.c.id, _table.c.name, _table.c.last_batch,
    _table.c.overrides_generation, _table.c.jobs_generation,
    sa.case((_table.c.info.is_(sa.null()), False),
            (_table.c.listed_at.is_(None), False), else_=True)).where(_NAMED)


def by_name(session: orm.Session, name: str) -> models.Host | None:
    """The host of that name."""
    return session.execute(
        sa.select(_row).where(_row.name == name)).scalar_one_or_none()


def page(session: orm.Session, limit: int,
         marker: str | None = None) -> Sequence[models.Host]:
    """Hosts in the order of their names, after ``marker``."""
    query = sa.select(_row).order_by(_row.name).limit(limit)
    if marker is not None:
        query = query.where(_row.name > marker)
    return session.execute(query).scalars().all()


def every(session: orm.Session) -> Sequence[models.Host]:
    """All hosts in the order of their names."""
    return session.execute(sa.select(_row).order_by(_row.name)
                           ).scalars().all()


def lock(session: orm.Session, name: str) -> models.Host | None:
    """The host of that name, ours alone until the transaction ends.

    The lock is an update that changes nothing: it works on SQLite as well,
    where there is no SELECT ... FOR UPDATE.
    """
    locked = session.execute(
        sa.update(_row).where(_row.name == name).values(
            last_batch=_row.last_batch).execution_options(
                synchronize_session=False))
    if not locked.rowcount:  # type: ignore[attr-defined]
        return None
    return by_name(session, name)


def lock_many(session: orm.Session,
              names: Collection[str]) -> dict[str, Progress]:
    """Those of these hosts that there are, as :func:`lock` does."""
    connection = session.connection()
    parameters = {'names': sorted(names)}
    connection.execute(_LOCK, parameters)
    return {row[1]: Progress(*row)
            for row in connection.execute(_PROGRESS, parameters)}


def advance(session: orm.Session, batches: Mapping[int, tuple[int, float]],
            now: float) -> None:
    """These batches of these hosts are stored.

    :param batches: number and time of each batch, by the host's id.
    """
    values: dict[str, ty.Any] = {'now': now}
    for place, (host_id, (number, at)) in enumerate(batches.items()):
        values.update({'id%d' % place: host_id, 'number%d' % place: number,
                       'at%d' % place: at})
    session.connection().execute(_advance(len(batches)), values)


# In one statement: on PostgreSQL each of many would wait for its answer.
@functools.cache
def _advance(count: int) -> sa.Update:
    def by_host(column: str, name: str) -> sa.ColumnElement[ty.Any]:
        kind = _table.c[column].type
        return sa.case(*(
            (_table.c.id == sa.bindparam('id%d' % place),
             sa.bindparam('%s%d' % (name, place), type_=kind))
            for place in range(count)))

    return sa.update(_table).where(_table.c.id.in_(
        [sa.bindparam('id%d' % place) for place in range(count)])).values(
            received_at=sa.bindparam('now'),
            last_batch=by_host('last_batch', 'number'),
            reported_at=by_host('reported_at', 'at'))


def add(session: orm.Session, name: str) -> models.Host:
    """Add a host of which nothing is known yet."""
    row = models.Host(name=name, last_batch=0, overrides_generation=0,
                      jobs_generation=0)
    session.add(row)
    session.flush()
    return row


def set_overrides_generation(session: orm.Session, host_ids: Iterable[int],
                             generation: int) -> None:
    """Let these hosts' agents know that their overrides changed."""
    session.execute(
        sa.update(_row).where(_row.id.in_(sorted(host_ids))).values(
            overrides_generation=generation).execution_options(
                synchronize_session=False))


def next_jobs_generation(session: orm.Session,
                         name: str) -> models.Host | None:
    """Let a host's agent know that its jobs changed.

    The first statement of every transaction that changes what operators
    want of a host: it holds the host's row, as :func:`lock` does.

    :returns: the host with its new generation.
    """
    changed = session.execute(
        sa.update(_row).where(_row.name == name).values(
            jobs_generation=_row.jobs_generation + 1).execution_options(
                synchronize_session=False))
    if not changed.rowcount:  # type: ignore[attr-defined]
        return None
    return by_name(session, name)
