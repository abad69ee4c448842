# SPDX-License-Identifier: Apache-2.0

"""Numbers handed out once each."""

from collections.abc import Mapping
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_OVERRIDE_GENERATION = 'override_generation'
_SNAPSHOT_VERSION = 'snapshot_version'
_SLOWDOWNS_AT = 'slowdowns_at'

# Made once, and of the table: every report that is more than samples takes
# numbers, and others wait meanwhile.
_table = ty.cast(sa.Table, models.Counter.__table__)
_NAMED = _table.c.name == sa.bindparam('counter')
_VALUE = sa.select(_table.c.value).where(_NAMED)
_NEXT = sa.update(_table).where(_NAMED).values(value=_table.c.value + 1)
_NEXT_AFTER = (
    sa.update(_table)
    .where(_NAMED)
    .values(
        value=sa.bindparam('count')
        + sa.case(
            (_table.c.value < sa.bindparam('least'), sa.bindparam('least')),
            else_=_table.c.value,
        )
    )
)
_RETURNING = {
    update: update.returning(_table.c.value) for update in (_NEXT, _NEXT_AFTER)
}


def _take(
    session: orm.Session, update: sa.Update, values: Mapping[str, ty.Any]
) -> int:
    connection = session.connection()
    if connection.dialect.update_returning:
        taken: int = connection.execute(
            _RETURNING[update], values
        ).scalar_one()
        return taken
    connection.execute(update, values)
    taken = connection.execute(
        _VALUE, {'counter': values['counter']}
    ).scalar_one()
    return taken


def next_override_generation(session: orm.Session) -> int:
    """Take the next number, and hold the counter until the end.

    The first statement of every transaction that changes an override or
    which hosts list an instance: one of the two then always reads what the
    other did, and no host misses an override.
    """
    return _take(session, _NEXT, {'counter': _OVERRIDE_GENERATION})


def override_generation(session: orm.Session) -> int:
    """The number taken last."""
    row = models.Counter
    return session.execute(
        sa.select(row.value).where(row.name == _OVERRIDE_GENERATION)
    ).scalar_one()


def next_snapshot_versions(
    session: orm.Session, now: float, count: int = 1
) -> int:
    """Take numbers for hosts that change, and hold the counter until the end.

    Before any host's row is taken: a transaction that reads a version then
    reads all changes up to it. The numbers are milliseconds since the epoch
    where the last one allows it, so that a database restored from a backup
    does not hand out numbers for the second time.

    :param now: seconds since the epoch.
    :param count: how many are needed.
    :returns: the last of them.
    """
    return _take(
        session,
        _NEXT_AFTER,
        {
            'counter': _SNAPSHOT_VERSION,
            'count': count,
            'least': int(now * 1000),
        },
    )


def advance_slowdowns(session: orm.Session, before: int) -> int:
    """Take all time up to a moment that nobody has taken, and hold it.

    :param before: seconds since the epoch.
    :returns: up to when it was taken already; not before ``before`` when
        there is nothing to take.
    """
    row = models.Counter
    session.execute(
        sa.update(row)
        .where(row.name == _SLOWDOWNS_AT)
        .values(value=row.value)
        .execution_options(synchronize_session=False)
    )
    taken = session.execute(
        sa.select(row.value).where(row.name == _SLOWDOWNS_AT)
    ).scalar_one()
    if taken < before:
        session.execute(
            sa.update(row)
            .where(row.name == _SLOWDOWNS_AT)
            .values(value=before)
            .execution_options(synchronize_session=False)
        )
    return taken
