# SPDX-License-Identifier: Apache-2.0

"""Rows that carry the number of a batch."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_SAMPLES: tuple[ty.Any, ...] = (models.UsageSecond, models.HostTimeSample)


def drop_above(session: orm.Session, host_id: int, highest: int) -> int:
    """Delete samples of a host that came with a batch above a number.

    :returns: the highest number that is left, of samples and of what is
        folded into sums.
    """
    fold = models.UsageFold
    session.execute(
        sa.update(fold)
        .where(fold.host_id == host_id, fold.batch > highest)
        .values(batch=0)
        .execution_options(synchronize_session=False)
    )
    found = [
        session.execute(
            sa.select(fold.batch).where(fold.host_id == host_id)
        ).scalar()
    ]
    for row in _SAMPLES:
        session.execute(
            sa.delete(row)
            .where(row.host_id == host_id, row.batch > highest)
            .execution_options(synchronize_session=False)
        )
        found.append(
            session.execute(
                sa.select(sa.func.max(row.batch)).where(row.host_id == host_id)
            ).scalar()
        )
    newest = max(number or 0 for number in found)
    session.execute(
        sa.update(fold)
        .where(fold.host_id == host_id, fold.batch < newest, fold.batch == 0)
        .values(batch=newest)
        .execution_options(synchronize_session=False)
    )
    return newest
