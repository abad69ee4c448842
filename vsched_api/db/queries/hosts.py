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

from collections.abc import Iterable
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_row = models.Host


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
