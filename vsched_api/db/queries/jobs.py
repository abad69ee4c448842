# SPDX-License-Identifier: Apache-2.0

"""Rows of jobs."""

from collections.abc import Collection
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_lib.contract import messages

_row = models.Job

#: Nothing more becomes of a job in one of these, unless it is resumed.
FINISHED = frozenset(
    (
        messages.JobState.DONE.value,
        messages.JobState.FAILED.value,
        messages.JobState.CANCELLED.value,
    )
)


class Found(ty.NamedTuple):
    """A job and the host that it is for."""

    job: models.Job
    host: str


def by_uuid(session: orm.Session, uuid: str) -> Found | None:
    """The job with that UUID."""
    found = session.execute(_select().where(_row.uuid == uuid)).first()
    return None if found is None else Found(*found)


def position(session: orm.Session, uuid: str) -> int | None:
    """Where in the order a job is."""
    return session.execute(
        sa.select(_row.id).where(_row.uuid == uuid)
    ).scalar_one_or_none()


def page(
    session: orm.Session,
    limit: int,
    after: int | None = None,
    host: str | None = None,
    states: Collection[str] = (),
    kinds: Collection[str] = (),
) -> Sequence[Found]:
    """Jobs, newest first.

    :param after: the position of the last one of the page before.
    """
    query = _select().order_by(_row.id.desc()).limit(limit)
    if after is not None:
        query = query.where(_row.id < after)
    if host is not None:
        query = query.where(models.Host.name == host)
    if states:
        query = query.where(_row.state.in_(states))
    if kinds:
        query = query.where(_row.kind.in_(kinds))
    return [Found(*row) for row in session.execute(query)]


def unfinished(
    session: orm.Session, host_id: int, kind: str | None = None
) -> Sequence[models.Job]:
    """The jobs of a host that it still has to do, oldest first."""
    query = (
        sa.select(_row)
        .where(_row.host_id == host_id, _row.state.not_in(FINISHED))
        .order_by(_row.id)
    )
    if kind is not None:
        query = query.where(_row.kind == kind)
    return session.execute(query).scalars().all()


def of_host(
    session: orm.Session, host_id: int, uuids: Collection[str]
) -> dict[str, models.Job]:
    """By UUID, those of these jobs that are the host's."""
    return {
        row.uuid: row
        for row in session.execute(
            sa.select(_row).where(
                _row.host_id == host_id, _row.uuid.in_(uuids)
            )
        ).scalars()
    }


def add(
    session: orm.Session,
    host_id: int,
    uuid: str,
    kind: str,
    parameters: dict[str, ty.Any],
    now: float,
) -> None:
    """Order a job."""
    session.add(
        _row(
            uuid=uuid,
            host_id=host_id,
            kind=kind,
            wanted=messages.JobWanted.RUN.value,
            state=messages.JobState.QUEUED.value,
            attempt=1,
            parameters=parameters,
            progress_ppm=0,
            detail='',
            created_at=now,
            updated_at=now,
        )
    )
    session.flush()


def delete_finished(session: orm.Session, before: float, limit: int) -> int:
    """Delete the oldest jobs that have come to their end.

    :param before: of the last order or report.
    :returns: how many were too old; fewer than ``limit`` when none is left.
    """
    ids = (
        session.execute(
            sa.select(_row.id)
            .where(_row.updated_at < before, _row.state.in_(FINISHED))
            .order_by(_row.updated_at)
            .limit(limit)
        )
        .scalars()
        .all()
    )
    if ids:
        # Asked again: one may have been resumed since.
        session.execute(
            sa.delete(_row)
            .where(_row.id.in_(ids), _row.state.in_(FINISHED))
            .execution_options(synchronize_session=False)
        )
    return len(ids)


def _select() -> sa.Select[ty.Any]:
    return (
        sa.select(_row, models.Host.name)
        .join(models.Host, models.Host.id == _row.host_id)
        .where(models.Host.deleted_at.is_(None))
    )
