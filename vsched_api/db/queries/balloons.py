# SPDX-License-Identifier: Apache-2.0

"""Rows of how instances stand with ballooning, and of what was ordered."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import instances

_report = models.Balloon
_order = models.BalloonOrder
_instance = models.Instance

# Made once: every report of which instances came or left needs it.
_ANY_ORDER = (
    sa.select(_order.instance_uuid)
    .where(_order.instance_uuid.in_(sa.bindparam('uuids', expanding=True)))
    .limit(1)
    .with_for_update(read=True)
)


class Row(ty.NamedTuple):
    """Everything known of one instance."""

    instance: models.Instance
    host: models.Host
    report: models.Balloon | None
    order: models.BalloonOrder | None


def _select() -> sa.Select[ty.Any]:
    return (
        sa.select(_instance, models.Host, _report, _order)
        .select_from(_instance)
        .join(models.Host, models.Host.id == _instance.host_id)
        .outerjoin(_report, _report.instance_id == _instance.id)
        .outerjoin(_order, _order.instance_uuid == _instance.uuid)
        .where(instances.is_current())
    )


def of_instance(session: orm.Session, instance_uuid: str) -> Row | None:
    """The row of a known instance, whatever is known of it."""
    found = session.execute(
        _select().where(_instance.uuid == instance_uuid)
    ).first()
    return None if found is None else Row(*found)


def page(
    session: orm.Session,
    limit: int,
    marker: str | None = None,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    states: Collection[str] = (),
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
) -> Sequence[Row]:
    """Instances with a report or an order, in the order of UUIDs.

    :param project_id: see :func:`instances.is_of_project`.
    """
    query = (
        _select()
        .where(
            sa.or_(
                _report.instance_id.is_not(None),
                _order.instance_uuid.is_not(None),
            )
        )
        .order_by(_instance.uuid)
        .limit(limit)
    )
    if marker is not None:
        query = query.where(_instance.uuid > marker)
    if host is not None:
        query = query.where(models.Host.name == host)
    if instance_uuids:
        query = query.where(_instance.uuid.in_(instance_uuids))
    if states:
        query = query.where(_report.state.in_(states))
    if project_id is not None:
        query = query.where(instances.is_of_project(project_id))
    if server_name is not None:
        query = query.where(_instance.server_name == server_name)
    if flavor_name is not None:
        query = query.where(_instance.flavor_name == flavor_name)
    return [Row(*row) for row in session.execute(query)]


# Orders


def orders_of_host(
    session: orm.Session, host_id: int
) -> Sequence[models.BalloonOrder]:
    """The orders for the instances on a host.

    Of those that :func:`vsched_api.db.queries.overrides.of_host` has the
    overrides of.
    """
    return (
        session.execute(
            sa.select(_order)
            .join(_instance, _instance.uuid == _order.instance_uuid)
            .where(_instance.host_id == host_id, instances.is_served())
            .order_by(_order.instance_uuid)
        )
        .scalars()
        .all()
    )


def orders_exist(
    session: orm.Session, instance_uuids: Collection[str]
) -> bool:
    """Whether there is an order for any of these instances.

    To be asked as :func:`vsched_api.db.queries.overrides.exist` is.
    """
    return (
        bool(instance_uuids)
        and session.execute(
            _ANY_ORDER, {'uuids': list(instance_uuids)}
        ).first()
        is not None
    )


def put_order(
    session: orm.Session,
    instance_uuid: str,
    values: Mapping[str, ty.Any],
    now: float,
) -> None:
    """Set an operator's order for an instance.

    :param values: of all other columns.
    """
    row = session.get(_order, instance_uuid)
    if row is None:
        row = _order(instance_uuid=instance_uuid, created_at=now)
        session.add(row)
    for name, value in values.items():
        setattr(row, name, value)
    row.updated_at = now
    session.flush()


def delete_order(session: orm.Session, instance_uuid: str) -> bool:
    """Remove what an operator wanted of an instance, if anything."""
    return bool(
        session.execute(
            sa.delete(_order).where(_order.instance_uuid == instance_uuid)
        ).rowcount  # type: ignore[attr-defined]
    )


def delete_orphaned_orders(session: orm.Session, before: float) -> int:
    """Remove old orders for instances that no row is left of."""
    known = sa.exists().where(_instance.uuid == _order.instance_uuid)
    return int(
        session.execute(
            sa.delete(_order)
            .where(~known, _order.updated_at < before)
            .execution_options(synchronize_session=False)
        ).rowcount  # type: ignore[attr-defined]
    )
