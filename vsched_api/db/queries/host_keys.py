# SPDX-License-Identifier: Apache-2.0

"""Rows of hosts' keys."""

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_row = models.HostKey


def by_host(session: orm.Session, host: str) -> models.HostKey | None:
    """The row of a host."""
    return session.execute(
        sa.select(_row).where(_row.host == host)
    ).scalar_one_or_none()


def every(session: orm.Session) -> list[tuple[str, int, int, float]]:
    """Host, newest and lowest serial and time of rotation of all rows.

    In the order of the hosts' names.
    """
    # Columns and no objects: collectors ask every two seconds.
    return [
        row._tuple()
        for row in session.execute(
            sa.select(
                _row.host, _row.serial, _row.lowest_serial, _row.rotated_at
            ).order_by(_row.host)
        )
    ]


def lock(session: orm.Session, host: str) -> models.HostKey | None:
    """The row of a host, ours alone until the transaction ends."""
    locked = session.execute(
        sa.update(_row)
        .where(_row.host == host)
        .values(serial=_row.serial)
        .execution_options(synchronize_session=False)
    )
    if not locked.rowcount:  # type: ignore[attr-defined]
        return None
    return by_host(session, host)


def add(session: orm.Session, host: str, now: float) -> None:
    """Add a host with its first key."""
    session.add(_row(host=host, serial=1, lowest_serial=1, rotated_at=now))
    session.flush()
