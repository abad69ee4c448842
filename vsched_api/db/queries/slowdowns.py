# SPDX-License-Identifier: Apache-2.0

"""Rows of what neighbours of a workload class cost each other."""

from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_lib.model import interference

_row = models.Slowdown
_bucket = models.UsageBucket
_instance = models.Instance


class Used(ty.NamedTuple):
    """What one instance got in one minute, and waited for.

    :param workload_class: None when nothing is known of it.
    """

    host_id: int
    workload_class: str | None
    guest_us: int
    wait_us: int


def every(
    session: orm.Session,
) -> dict[interference.Pair, interference.Estimate]:
    """All estimates, in the order of their pairs."""
    return {
        (one.victim, one.neighbour): interference.Estimate(
            one.slowdown, one.samples
        )
        for one in session.execute(
            sa.select(_row).order_by(_row.victim, _row.neighbour)
        ).scalars()
    }


def put(
    session: orm.Session,
    estimates: Mapping[interference.Pair, interference.Estimate],
) -> None:
    """Store estimates over older ones."""
    for (victim, neighbour), one in estimates.items():
        session.merge(
            _row(
                victim=victim,
                neighbour=neighbour,
                slowdown=one.slowdown,
                samples=one.samples,
            )
        )


def used(
    session: orm.Session, length_s: int, at: float, every_nth: int, nth: int
) -> Sequence[Used]:
    """What instances used in one bucket, those of some of the hosts.

    :param at: the bucket's end.
    :param every_nth: of hosts, by their ids.
    """
    return [
        Used(*one)
        for one in session.execute(
            sa.select(
                _bucket.host_id,
                _instance.workload_class,
                _bucket.guest_us,
                _bucket.wait_us,
            )
            .outerjoin(
                _instance,
                sa.and_(
                    _instance.uuid == _bucket.instance_uuid,
                    _instance.host_id == _bucket.host_id,
                ),
            )
            .where(
                _bucket.length_s == length_s,
                _bucket.at == at,
                _bucket.host_id % every_nth == nth,
            )
            .order_by(_bucket.host_id, _bucket.id)
        )
    ]


def count_hosts(session: orm.Session) -> int:
    """How many hosts there are."""
    return session.execute(
        sa.select(sa.func.count()).select_from(models.Host)
    ).scalar_one()
