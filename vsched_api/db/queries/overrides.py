# SPDX-License-Identifier: Apache-2.0

"""Rows of overrides."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import instances

_row = models.Override

# Made once: every report of which instances came or left needs it.
_ANY = (
    sa.select(_row.instance_uuid)
    .where(_row.instance_uuid.in_(sa.bindparam('uuids', expanding=True)))
    .limit(1)
    .with_for_update(read=True)
)


def get(session: orm.Session, instance_uuid: str) -> models.Override | None:
    """The override of an instance."""
    return session.get(_row, instance_uuid)


def of_host(session: orm.Session, host_id: int) -> Sequence[models.Override]:
    """The overrides of every instance on a host.

    Of those of :func:`vsched_api.db.queries.instances.is_served`.
    """
    instance = models.Instance
    return (
        session.execute(
            sa.select(_row)
            .join(instance, instance.uuid == _row.instance_uuid)
            .where(instance.host_id == host_id, instances.is_served())
            .order_by(_row.instance_uuid)
        )
        .scalars()
        .all()
    )


def exist(session: orm.Session, instance_uuids: Collection[str]) -> bool:
    """Whether any of these instances has an override.

    Call it under the counter's lock. A locking read where there is one:
    MariaDB would otherwise answer from the transaction's snapshot.
    """
    return (
        bool(instance_uuids)
        and session.execute(_ANY, {'uuids': list(instance_uuids)}).first()
        is not None
    )


def put(
    session: orm.Session,
    instance_uuid: str,
    values: Mapping[str, ty.Any],
    now: float,
) -> models.Override:
    """Set an instance's override.

    :param values: of all other columns.
    """
    row = get(session, instance_uuid)
    if row is None:
        row = models.Override(instance_uuid=instance_uuid, created_at=now)
        session.add(row)
    for name, value in values.items():
        setattr(row, name, value)
    row.updated_at = now
    session.flush()
    return row


def delete(session: orm.Session, instance_uuid: str) -> bool:
    """Remove an instance's override, if it has one."""
    return bool(
        session.execute(
            sa.delete(_row).where(_row.instance_uuid == instance_uuid)
        ).rowcount  # type: ignore[attr-defined]
    )


def delete_orphans(session: orm.Session, before: float) -> int:
    """Remove old overrides of instances that no row is left of."""
    known = sa.exists().where(models.Instance.uuid == _row.instance_uuid)
    return int(
        session.execute(
            sa.delete(_row)
            .where(~known, _row.updated_at < before)
            .execution_options(synchronize_session=False)
        ).rowcount  # type: ignore[attr-defined]
    )
