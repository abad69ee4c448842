# SPDX-License-Identifier: Apache-2.0

"""Reports of which an instance has one, the latest."""

from collections.abc import Iterable
from collections.abc import Mapping
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm


def put(
    session: orm.Session,
    table: ty.Any,
    reports: Mapping[int, Mapping[str, ty.Any]],
) -> None:
    """Store reports over older ones.

    :param table: a model whose key is ``instance_id``.
    :param reports: by the id of their instance's row.
    """
    rows = {
        row.instance_id: row
        for row in session.execute(
            sa.select(table).where(table.instance_id.in_(reports))
        ).scalars()
    }
    added = []
    for instance_id, values in reports.items():
        row = rows.get(instance_id)
        if row is None:
            added.append({'instance_id': instance_id, **values})
        else:
            for name, value in values.items():
                if getattr(row, name) != value:
                    setattr(row, name, value)
    if added:
        session.execute(sa.insert(table), added)
    session.flush()


def delete(
    session: orm.Session, table: ty.Any, instance_ids: Iterable[int]
) -> None:
    """Delete the reports on instances.

    :param table: a model whose key is ``instance_id``.
    :param instance_ids: of the instances' rows.
    """
    session.execute(
        sa.delete(table)
        .where(table.instance_id.in_(list(instance_ids)))
        .execution_options(synchronize_session=False)
    )
