# SPDX-License-Identifier: Apache-2.0

"""Rows of profiles, and the points of error profiles.

The newest profile of a source is the one that was stored last.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_point = models.ErrorPoint

#: The kinds of profiles, each a table.
Kind = ty.TypeVar('Kind', models.ErrorProfile, models.OverheadProfile)

Points = dict[int, list[models.ErrorPoint]]


def newest(
    session: orm.Session,
    kind: type[Kind],
    host_id: int,
    source: str | None = None,
    version: int | None = None,
) -> Sequence[Kind]:
    """The newest profile of each source, in the order of their sources.

    :param kind: of profiles.
    :param source: only of this one.
    :param version: only those of this version.
    """
    return (
        session.execute(
            _newest(kind, source is not None, version is not None),
            {'host_id': host_id, 'source': source, 'version': version},
        )
        .scalars()
        .all()
    )


# Made once: every report that introduces a host needs it.
@functools.cache
def _newest(
    kind: type[Kind], by_source: bool, by_version: bool
) -> sa.Select[tuple[Kind]]:
    query = sa.select(sa.func.max(kind.id)).where(
        kind.host_id == sa.bindparam('host_id')
    )
    if by_source:
        query = query.where(kind.source == sa.bindparam('source'))
    if by_version:
        query = query.where(kind.version == sa.bindparam('version'))
    return (
        sa.select(kind)
        .where(kind.id.in_(query.group_by(kind.source)))
        .order_by(kind.source)
    )


def position(
    session: orm.Session, kind: type[Kind], host_id: int, uuid: str
) -> int | None:
    """Where in the order of its host a profile is."""
    return session.execute(
        sa.select(kind.id).where(kind.uuid == uuid, kind.host_id == host_id)
    ).scalar_one_or_none()


def page(
    session: orm.Session,
    kind: type[Kind],
    host_id: int,
    limit: int,
    after: int | None = None,
    source: str | None = None,
) -> Sequence[Kind]:
    """Profiles of a host, newest first.

    :param after: the position of the last one of the page before.
    """
    query = (
        sa.select(kind)
        .where(kind.host_id == host_id)
        .order_by(kind.id.desc())
        .limit(limit)
    )
    if after is not None:
        query = query.where(kind.id < after)
    if source is not None:
        query = query.where(kind.source == source)
    return session.execute(query).scalars().all()


def points(session: orm.Session, profile_ids: Collection[int]) -> Points:
    """By the id of their profile, its points in their order."""
    found: Points = {number: [] for number in profile_ids}
    for row in session.execute(
        sa.select(_point)
        .where(_point.profile_id.in_(profile_ids))
        .order_by(_point.id)
    ).scalars():
        found[row.profile_id].append(row)
    return found


def add(
    session: orm.Session,
    kind: type[Kind],
    host_id: int,
    profiles: Sequence[Mapping[str, ty.Any]],
) -> int:
    """Store profiles; one that is stored already stays as it is.

    :param profiles: rows; of error profiles with the rows of their
        ``points``.
    :returns: how many were new.
    """
    by_uuid = {profile['uuid']: profile for profile in reversed(profiles)}
    if not by_uuid:
        return 0
    for known in session.execute(
        sa.select(kind.uuid).where(kind.uuid.in_(by_uuid))
    ).scalars():
        del by_uuid[known]
    # In the order they were reported: that is also the order of their ids.
    for profile in reversed(by_uuid.values()):
        values = dict(profile)
        points: Sequence[Mapping[str, ty.Any]] = (
            values.pop('points') if kind is models.ErrorProfile else ()
        )
        row = kind(host_id=host_id, **values)
        session.add(row)
        session.flush()
        if points:
            session.execute(
                sa.insert(_point),
                [{'profile_id': row.id, **point} for point in points],
            )
    return len(by_uuid)


def delete_surplus(
    session: orm.Session, kind: type[Kind], keep: int, limit: int
) -> int:
    """Delete the oldest profiles beyond the newest of a host and source.

    :param keep: how many of each host and source stay.
    :returns: how many went; fewer than ``limit`` when none is left.
    """
    rank = (
        sa.func.row_number()
        .over(
            partition_by=(kind.host_id, kind.source), order_by=kind.id.desc()
        )
        .label('newest')
    )
    ranked = sa.select(kind.id, rank).subquery()
    ids = (
        session.execute(
            sa.select(ranked.c.id)
            .where(ranked.c.newest > keep)
            .order_by(ranked.c.id)
            .limit(limit)
        )
        .scalars()
        .all()
    )
    if ids:
        # Not left to the foreign key: an SQLite file opened without its
        # enforcement would keep the points.
        if kind is models.ErrorProfile:
            session.execute(
                sa.delete(_point)
                .where(_point.profile_id.in_(ids))
                .execution_options(synchronize_session=False)
            )
        session.execute(
            sa.delete(kind)
            .where(kind.id.in_(ids))
            .execution_options(synchronize_session=False)
        )
    return len(ids)
