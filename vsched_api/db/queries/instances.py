# SPDX-License-Identifier: Apache-2.0

"""Rows of instances: which host lists which."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import types
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import sorting

_row = models.Instance

# Made once: every report with a list of instances needs them.
_INSERT = ty.cast(sa.Table, _row.__table__).insert()
_OF_HOST = sa.select(_row).where(_row.host_id == sa.bindparam('host_id'))

#: How many instances one statement names at most.
CHUNK = 1000


def is_current(
    rank: Callable[[ty.Any], sa.ColumnElement[int]] | None = None,
) -> sa.ColumnElement[bool]:
    """Whether a row is the one that says where its instance is.

    The host that lists it counts; of two that do, as while it migrates,
    the one that Nova does not contradict, and of two such the one that began
    to list it last; when none lists it, the last that did.

    :param rank: of a row; a higher one counts for more than the time.
    """
    other = orm.aliased(models.Instance)
    later = sa.or_(
        other.arrived_at > _row.arrived_at,
        sa.and_(other.arrived_at == _row.arrived_at, other.id > _row.id),
    )
    if rank is not None:
        later = sa.or_(
            rank(other) > rank(_row), sa.and_(rank(other) == rank(_row), later)
        )

    def contradicted(row: ty.Any) -> sa.ColumnElement[bool]:
        return ty.cast(
            sa.ColumnElement[bool], row.contradicted_at.is_not(None)
        )

    return ~sa.exists().where(
        other.uuid == _row.uuid,
        other.id != _row.id,
        sa.or_(
            sa.and_(other.present.is_(True), _row.present.is_(False)),
            sa.and_(
                other.present == _row.present,
                sa.or_(
                    sa.and_(contradicted(_row), ~contradicted(other)),
                    sa.and_(contradicted(_row) == contradicted(other), later),
                ),
            ),
        ),
    )


def is_served() -> sa.ColumnElement[bool]:
    """Whether the host of a row gets what operators set for the instance.

    Every host that lists it does, as both do while it migrates, and the last
    one that listed a stopped one: it should have it when it starts again. One
    that Nova contradicts does not while another host lists the instance.
    """
    return sa.or_(
        sa.and_(_row.present.is_(True), _row.contradicted_at.is_(None)),
        is_current(),
    )


class Server(ty.NamedTuple):
    """Nova's names of an instance; None where no agent reported them."""

    server_name: str | None
    project_id: str | None
    flavor_name: str | None


def is_of_project(project_id: str) -> sa.ColumnElement[bool]:
    """Whether an instance belongs to a project.

    A host says so, whether it lists the instance now or once did; none says
    that it belongs to another one, and none that lists it now leaves it
    open. So a host that lists an instance of others for a project of its own
    hides it from them, and shows that project nothing.
    """
    mine, other = orm.aliased(_row), orm.aliased(_row)
    return sa.and_(
        _row.uuid.in_(
            sa.select(mine.uuid).where(mine.project_id == project_id)
        ),
        ~sa.exists().where(
            other.uuid == _row.uuid,
            sa.or_(
                other.project_id != project_id,
                sa.and_(other.project_id.is_(None), other.present.is_(True)),
            ),
        ),
    )


def project_id(session: orm.Session, uuid: str) -> str | None:
    """Return the project that an instance belongs to.

    :returns: None when none is known, or hosts say different ones, see
        :func:`is_of_project`.
    """
    reported = session.execute(
        sa.select(_row.project_id, _row.present).where(_row.uuid == uuid)
    ).all()
    found = {
        one for one, present in reported if one is not None or present is True
    }
    return found.pop() if len(found) == 1 else None


def uuids(
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
) -> sa.Select[ty.Any] | None:
    """Return a query of the UUIDs of these servers; None for all of them.

    :param project_id: see :func:`is_of_project`.
    """
    if project_id is None and server_name is None and flavor_name is None:
        return None
    query = sa.select(_row.uuid).where(is_current())
    return query.where(*of_server(project_id, server_name, flavor_name))


def of_server(
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that a row is of one of these servers, if any.

    :param project_id: see :func:`is_of_project`.
    """
    found = [] if project_id is None else [is_of_project(project_id)]
    if server_name is not None:
        found.append(_row.server_name == server_name)
    if flavor_name is not None:
        found.append(_row.flavor_name == flavor_name)
    return found


def among(
    column: ty.Any, instance_uuids: Collection[str] = (), **server: str | None
) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that rows are of these instances, if any.

    :param column: with the UUID of the instance; of an alias in a query of
        instances.
    :param instance_uuids: none for all.
    :param server: as for :func:`uuids`.
    """
    found = [column.in_(instance_uuids)] if instance_uuids else []
    query = uuids(**server)
    return found if query is None else [*found, column.in_(query)]


def selected(
    session: orm.Session,
    instance_uuids: Collection[str] = (),
    **server: str | None,
) -> frozenset[str] | None:
    """Return the UUIDs of these instances; None for all of them.

    For what is no column; the parameters are those of :func:`among`.
    """
    query = uuids(**server)
    if query is None:
        return frozenset(instance_uuids) or None
    if instance_uuids:
        query = query.where(_row.uuid.in_(instance_uuids))
    return frozenset(session.execute(query).scalars())


def servers(session: orm.Session, uuids: Collection[str]) -> dict[str, Server]:
    """Return Nova's names of instances, by their UUIDs.

    Those without a row are left out.
    """
    wanted = sorted(uuids)
    return {
        uuid: Server(*found)
        for first in range(0, len(wanted), CHUNK)
        for uuid, *found in session.execute(
            sa.select(
                _row.uuid, _row.server_name, _row.project_id, _row.flavor_name
            ).where(_row.uuid.in_(wanted[first : first + CHUNK]), is_current())
        )
    }


def current(session: orm.Session, uuid: str) -> models.Instance | None:
    """The instance where it is now, or was last; with its host."""
    return session.execute(
        sa.select(_row)
        .where(_row.uuid == uuid, is_current())
        .options(orm.joinedload(_row.host))
    ).scalar_one_or_none()


_uuid: sa.ColumnElement[str] = ty.cast(sa.Table, _row.__table__).c.uuid

#: What pages may be sorted by.
SORT_KEYS: Mapping[str, sa.ColumnElement[ty.Any]] = types.MappingProxyType(
    {
        'instance_uuid': _uuid,
        'host': ty.cast(sa.ColumnElement[str], models.Host.name),
        'server_name': sa.func.coalesce(_row.server_name, ''),
        'vcpus': ty.cast(sa.ColumnElement[int], _row.vcpus),
    }
)


def position(
    session: orm.Session,
    uuid: str,
    sort_key: str,
    project_id: str | None = None,
) -> sorting.Position | None:
    """Where in the order an instance is.

    :param sort_key: one of :data:`SORT_KEYS`.
    :param project_id: only of this project.
    """
    return sorting.position(
        session,
        _listed().where(*of_server(project_id)),
        SORT_KEYS[sort_key],
        _uuid,
        uuid,
    )


def page(
    session: orm.Session,
    limit: int,
    after: sorting.Position | None = None,
    host: str | None = None,
    present: bool | None = None,
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
    instance_uuids: Collection[str] = (),
    among_uuids: sa.Select[ty.Any] | None = None,
    sort_key: str = 'instance_uuid',
    descending: bool = False,
) -> Sequence[models.Instance]:
    """Instances in an order, each once, with hosts; those after a position.

    :param after: the position of the last one of the page before.
    :param project_id: see :func:`is_of_project`.
    :param among_uuids: a query of the UUIDs of those that count; None for
        all.
    :param sort_key: one of :data:`SORT_KEYS`.
    """
    query = sorting.page(
        _listed().options(orm.contains_eager(_row.host)),
        SORT_KEYS[sort_key],
        _uuid,
        limit,
        after,
        descending,
    )
    if host is not None:
        query = query.where(models.Host.name == host)
    if instance_uuids:
        query = query.where(_row.uuid.in_(instance_uuids))
    if among_uuids is not None:
        query = query.where(_row.uuid.in_(among_uuids))
    if present is not None:
        query = query.where(_row.present.is_(present))
    query = query.where(*of_server(project_id, server_name, flavor_name))
    return session.execute(query).scalars().all()


def _listed() -> sa.Select[ty.Any]:
    return sa.select(_row).join(_row.host).where(is_current())


def of_uuid(session: orm.Session, uuid: str) -> Sequence[models.Instance]:
    """The rows of all hosts that list the instance, or once did."""
    return (
        session.execute(
            sa.select(_row)
            .where(_row.uuid == uuid)
            .options(orm.joinedload(_row.host))
        )
        .scalars()
        .all()
    )


def of_host(session: orm.Session, host_id: int) -> dict[str, models.Instance]:
    """By UUID, everything that a host lists or once did."""
    return {
        row.uuid: row
        for row in session.execute(_OF_HOST, {'host_id': host_id}).scalars()
    }


def add(session: orm.Session, rows: Sequence[Mapping[str, ty.Any]]) -> None:
    """Add rows in one statement.

    :param rows: all with the same columns; those left out are NULL.
    """
    if rows:
        session.connection().execute(_INSERT, rows)


def disputed(session: orm.Session, host_id: int) -> frozenset[str]:
    """Return what a host lists and another one has listed for longer."""
    other = orm.aliased(_row)
    return frozenset(
        session.execute(
            sa.select(_row.uuid).where(
                _row.host_id == host_id,
                _row.present.is_(True),
                sa.exists().where(
                    other.uuid == _row.uuid,
                    other.host_id != host_id,
                    other.present.is_(True),
                    other.arrived_at < _row.arrived_at,
                ),
            )
        ).scalars()
    )


def count_by_host(
    session: orm.Session, host_ids: Collection[int] | None = None
) -> dict[int, int]:
    """How many instances each host lists now, by the host's id.

    :param host_ids: only of these hosts; None for all.
    """
    query = (
        sa.select(_row.host_id, sa.func.count())
        .where(_row.present.is_(True))
        .group_by(_row.host_id)
    )
    if host_ids is not None:
        query = query.where(_row.host_id.in_(host_ids))
    return dict(session.execute(query).tuples().all())


def delete_absent(session: orm.Session, before: float, limit: int) -> int:
    """Forget instances that left before a time.

    :returns: how many rows went; fewer than ``limit`` when none is left.
    """
    ids = (
        session.execute(
            sa.select(_row.id)
            .where(_row.left_at < before, _row.present.is_(False))
            .order_by(_row.left_at)
            .limit(limit)
        )
        .scalars()
        .all()
    )
    if ids:
        # Not left to the foreign key: an SQLite file opened without its
        # enforcement would keep the rows.
        session.execute(
            sa.delete(models.Reservation).where(
                models.Reservation.instance_id.in_(ids)
            )
        )
        session.execute(
            sa.delete(models.Balloon).where(
                models.Balloon.instance_id.in_(ids)
            )
        )
        session.execute(
            sa.delete(_row).where(_row.id.in_(ids), _row.present.is_(False))
        )
    return len(ids)


def only_on(session: orm.Session, host_id: int) -> int:
    """How many instances a host lists and no other one."""
    other = orm.aliased(_row)
    return session.execute(
        sa.select(sa.func.count())
        .select_from(_row)
        .where(
            _row.host_id == host_id,
            _row.present.is_(True),
            ~sa.exists().where(
                other.uuid == _row.uuid,
                other.host_id != host_id,
                other.present.is_(True),
            ),
        )
    ).scalar_one()


def delete_of(session: orm.Session, host_id: int) -> None:
    """Delete a host's rows, with what is known of them there."""
    session.execute(
        sa.delete(_row)
        .where(_row.host_id == host_id)
        .execution_options(synchronize_session=False)
    )
