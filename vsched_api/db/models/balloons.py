# SPDX-License-Identifier: Apache-2.0

"""Tables of ballooning."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db.models import base


class Balloon(base.Base):
    """The last ``balloons.BalloonReport`` of an instance on a host."""

    __tablename__ = 'balloons'

    instance_id: orm.Mapped[int] = orm.mapped_column(
        base.Id,
        sa.ForeignKey(
            'instances.id', name='balloons_instance_id_fk', ondelete='CASCADE'
        ),
        primary_key=True,
        autoincrement=False,
    )
    state: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    auto: orm.Mapped[bool]
    dry_run: orm.Mapped[bool]
    pinned: orm.Mapped[bool]
    guest_answers: orm.Mapped[bool | None]
    vcpus: orm.Mapped[int]
    online_vcpus: orm.Mapped[int]
    min_vcpus: orm.Mapped[int]
    floor_vcpus: orm.Mapped[int]
    cpus: orm.Mapped[list[ty.Any]]
    cause: orm.Mapped[str | None] = orm.mapped_column(sa.Text)
    since: orm.Mapped[float]
    not_before: orm.Mapped[float | None]
    failures: orm.Mapped[int]
    generation: orm.Mapped[int]
    order_state: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    code: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    detail: orm.Mapped[str | None] = orm.mapped_column(sa.Text)


class BalloonOrder(base.Authored, base.Base):
    """An operator's order for an instance's vCPUs.

    Like an override it belongs to the instance and goes with it from host
    to host; its generation is one of the overrides'.
    """

    __tablename__ = 'balloon_orders'

    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.UUID_CHARS), primary_key=True
    )
    generation: orm.Mapped[int]
    target_vcpus: orm.Mapped[int | None]
    frozen: orm.Mapped[bool]
    created_at: orm.Mapped[float]
    updated_at: orm.Mapped[float]


class BalloonChange(base.Base):
    """A ``balloons.BalloonChange`` of an instance on a host.

    ``told_at`` is when it was last reported, by the collector's clock.
    """

    __tablename__ = 'balloon_changes'
    __table_args__ = base.with_options(
        sa.UniqueConstraint('uuid', name='uniq_balloon_changes0uuid'),
        sa.Index('balloon_changes_started_at_idx', 'started_at', 'id'),
        sa.Index(
            'balloon_changes_instance_uuid_idx', 'instance_uuid', 'started_at'
        ),
        sa.Index('balloon_changes_host_id_idx', 'host_id', 'started_at'),
        sa.Index('balloon_changes_told_at_idx', 'told_at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(base.UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='balloon_changes_host_id_fk')
    )
    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.UUID_CHARS)
    )
    started_at: orm.Mapped[float]
    ended_at: orm.Mapped[float | None]
    vcpus: orm.Mapped[int]
    before_vcpus: orm.Mapped[int]
    online_vcpus: orm.Mapped[int]
    manual: orm.Mapped[bool]
    cause: orm.Mapped[str] = orm.mapped_column(sa.Text)
    took_ms: orm.Mapped[int | None]
    outcome: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    detail: orm.Mapped[str | None] = orm.mapped_column(sa.Text)
    told_at: orm.Mapped[float]
