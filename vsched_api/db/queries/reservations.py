# SPDX-License-Identifier: Apache-2.0

"""Rows of reservations, merged with what operators want instead."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import instances
from vsched_api.db.queries import sorting
from vsched_lib.contract import messages

_report = models.Reservation
_override = models.Override
_instance = models.Instance


class Row(ty.NamedTuple):
    """Everything known of one instance's reservation.

    :param state: where it stands, the override considered.
    :param source: where what is wanted comes from, likewise.
    """

    instance: models.Instance
    host: models.Host
    report: models.Reservation | None
    override: models.Override | None
    state: str
    source: str


def _has_report(row: ty.Any) -> sa.ColumnElement[int]:
    report = orm.aliased(_report)
    return sa.case(
        (sa.exists().where(report.instance_id == row.id), 1), else_=0
    )


def _is_current() -> sa.ColumnElement[bool]:
    # While an instance migrates, the host that has reported its reservation
    # speaks for it until the new one has.
    return instances.is_current(_has_report)


def _state() -> sa.ColumnElement[str]:
    # Pending: an override that the agent has not answered, or an answer to
    # one that is gone. Neither is answered by an instance that left.
    unanswered = sa.and_(
        _override.instance_uuid.is_not(None),
        _instance.present.is_(True),
        _override.generation > sa.func.coalesce(_report.generation, 0),
    )
    withdrawn = sa.and_(
        _override.instance_uuid.is_(None),
        _report.source == messages.Source.OVERRIDE.value,
        _instance.present.is_(True),
    )
    return sa.case(
        (unanswered, messages.State.PENDING.value),
        (withdrawn, messages.State.PENDING.value),
        else_=sa.func.coalesce(_report.state, messages.State.RELEASED.value),
    ).label('effective_state')


def _source() -> sa.ColumnElement[str]:
    return sa.case(
        (_override.instance_uuid.is_not(None), messages.Source.OVERRIDE.value),
        else_=_report.source,
    ).label('effective_source')


def _select(*what: ty.Any) -> sa.Select[ty.Any]:
    return (
        sa.select(*what, _state(), _source())
        .select_from(_instance)
        .join(models.Host, models.Host.id == _instance.host_id)
        .outerjoin(_report, _report.instance_id == _instance.id)
        .outerjoin(_override, _override.instance_uuid == _instance.uuid)
    )


def _carries() -> sa.ColumnElement[bool]:
    return sa.or_(
        _report.instance_id.is_not(None), _override.instance_uuid.is_not(None)
    )


def _listed(*what: ty.Any) -> sa.Select[ty.Any]:
    return _select(*what).where(_carries(), _is_current())


def of_instance(session: orm.Session, instance_uuid: str) -> Row | None:
    """The row of a known instance, whether it carries one or not."""
    found = session.execute(
        _select(_instance, models.Host, _report, _override).where(
            _instance.uuid == instance_uuid, _is_current()
        )
    ).first()
    return None if found is None else Row(*found)


class _Part(ty.NamedTuple):
    """Columns of one table that a list reads, and what has their values.

    :param columns: the first one is NULL only without a row of the table.
    """

    columns: Sequence[sa.Column[ty.Any]]
    make: Callable[..., ty.Any]


def _part(model: ty.Any, *names: str) -> _Part:
    columns = model.__table__.c
    if not names:
        names = tuple(
            column.key
            for column in sorted(columns, key=lambda one: not one.primary_key)
        )
    return _Part(
        [columns[name] for name in names],
        dataclasses.make_dataclass(model.__name__, names, slots=True),
    )


#: Objects of the ORM take several times as long to make, and a host's row is
#: larger than all that is shown of a reservation.
_PARTS = (
    _part(
        _instance,
        *('uuid', 'name', 'present', 'vcpus'),
        *('server_name', 'project_id', 'flavor_name'),
    ),
    _part(models.Host, 'name'),
    _part(_report),
    _part(_override),
)
_PLAIN_COLUMNS = [column for part in _PARTS for column in part.columns]


def _plain(row: Sequence[ty.Any]) -> Row:
    """Return a row without the ORM.

    :param row: values of ``_PLAIN_COLUMNS``, state and source.
    """
    found: list[ty.Any] = []
    start = 0
    for part in _PARTS:
        end = start + len(part.columns)
        values = row[start:end]
        found.append(None if values[0] is None else part.make(*values))
        start = end
    return Row(*found, *row[start:])


_uuid: sa.ColumnElement[str] = ty.cast(sa.Table, _instance.__table__).c.uuid

#: What pages may be sorted by.
SORT_KEYS = ('instance_uuid', 'host', 'state', 'bandwidth_mcpu')

_MCPU = 1000.0
#: Above what any host has.
_MAX_MCPU = 10**12


def _key(sort_key: str) -> sa.ColumnElement[ty.Any]:
    if sort_key == 'host':
        return ty.cast(sa.ColumnElement[str], models.Host.name)
    if sort_key == 'state':
        return ty.cast(sa.ColumnElement[str], _state().element)
    return _uuid if sort_key == 'instance_uuid' else _bandwidth_mcpu()


def _bandwidth_mcpu() -> sa.ColumnElement[int]:
    """What is wanted in total; -1 without a reservation.

    An integer: databases differ in how many digits of a quotient they keep.
    An agent reports what was asked for, which may be any number.
    """
    runtime_us, period_us = (
        sa.case(
            (_override.instance_uuid.is_not(None), getattr(_override, name)),
            else_=getattr(_report, name),
        )
        for name in ('runtime_us', 'period_us')
    )
    exact = (
        sa.literal(_MCPU)
        * runtime_us
        * _instance.vcpus
        / sa.func.nullif(period_us, 0)
    )
    return sa.func.coalesce(
        sa.cast(
            sa.case((exact > _MAX_MCPU, _MAX_MCPU), else_=exact), sa.BigInteger
        ),
        -1,
    )


def position(
    session: orm.Session,
    instance_uuid: str,
    sort_key: str,
    project_id: str | None = None,
) -> sorting.Position | None:
    """Where in the order an instance with a reservation is.

    :param sort_key: one of :data:`SORT_KEYS`.
    :param project_id: only of this project.
    """
    return sorting.position(
        session,
        _listed().where(*instances.of_server(project_id)),
        _key(sort_key),
        _uuid,
        instance_uuid,
    )


def page(
    session: orm.Session,
    limit: int,
    after: sorting.Position | None = None,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    states: Collection[str] = (),
    sources: Collection[str] = (),
    backend: str | None = None,
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
    sort_key: str = SORT_KEYS[0],
    descending: bool = False,
) -> Sequence[Row]:
    """Instances that carry a reservation in an order, those after a position.

    :param after: the position of the last one of the page before.
    :param backend: the one that enforces.
    :param project_id: see :func:`instances.is_of_project`.
    :param sort_key: one of :data:`SORT_KEYS`.
    """
    query = sorting.page(
        _listed(*_PLAIN_COLUMNS),
        _key(sort_key),
        _uuid,
        limit,
        after,
        descending,
    )
    if host is not None:
        query = query.where(models.Host.name == host)
    if instance_uuids:
        query = query.where(_instance.uuid.in_(instance_uuids))
    if states:
        query = query.where(_state().in_(states))
    if sources:
        query = query.where(_source().in_(sources))
    if backend is not None:
        query = query.where(_report.enforced_backend == backend)
    query = query.where(
        *instances.of_server(project_id, server_name, flavor_name)
    )
    rows = session.connection().execute(query).all()
    return [_plain(row) for row in rows]


def instances_in(states: Collection[str]) -> sa.Select[ty.Any]:
    """Return a query of the UUIDs of instances with one in these states."""
    return (
        _listed()
        .with_only_columns(_instance.uuid)
        .where(_state().in_(states))
        # Within a query of instances these are others.
        .correlate(None)
    )


def count_by_host_and_state(
    session: orm.Session,
) -> Sequence[tuple[str, str, int]]:
    """How many reservations each host has in each state."""
    state = _state()
    query = (
        sa.select(models.Host.name, state, sa.func.count())
        .select_from(_instance)
        .join(models.Host, models.Host.id == _instance.host_id)
        .outerjoin(_report, _report.instance_id == _instance.id)
        .outerjoin(_override, _override.instance_uuid == _instance.uuid)
        .where(_carries(), _is_current())
        .group_by(models.Host.name, sa.literal_column('effective_state'))
        .order_by(models.Host.name, sa.literal_column('effective_state'))
    )
    return [
        (name, word, count) for name, word, count in session.execute(query)
    ]


def release(
    session: orm.Session, instance_ids: Iterable[int], at: float
) -> None:
    """Nothing is enforced any more on instances that left their host."""
    session.execute(
        sa.update(_report)
        .where(
            _report.instance_id.in_(list(instance_ids)),
            _report.state != messages.State.RELEASED.value,
        )
        .values(
            state=messages.State.RELEASED.value,
            since=at,
            code=None,
            detail=None,
            enforced_backend=None,
            enforced_runtime_us=None,
            enforced_period_us=None,
            io=None,
            communication=None,
        )
        .execution_options(synchronize_session=False)
    )
