# SPDX-License-Identifier: Apache-2.0

"""Tables of what hosts are asked to do."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db.models import base


class Job(base.Base):
    """A job that an operator ordered for a host, and its progress.

    All times are of this side's clock: ``updated_at`` is when it was last
    ordered or reported on, ``started_at`` when the agent first reported that
    the attempt runs. ``progress_from_at`` and ``progress_from_ppm`` are the
    first progress of the current run.
    """

    __tablename__ = 'jobs'
    __table_args__ = base.with_options(
        sa.UniqueConstraint('uuid', name='uniq_jobs0uuid'),
        sa.Index('jobs_host_id_idx', 'host_id', 'state'),
        sa.Index('jobs_updated_at_idx', 'updated_at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(base.UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='jobs_host_id_fk')
    )
    kind: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    wanted: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    state: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    attempt: orm.Mapped[int]
    parameters: orm.Mapped[dict[str, ty.Any]]
    progress_ppm: orm.Mapped[int]
    detail: orm.Mapped[str] = orm.mapped_column(sa.Text)
    created_at: orm.Mapped[float]
    updated_at: orm.Mapped[float]
    started_at: orm.Mapped[float | None]
    progress_from_at: orm.Mapped[float | None]
    progress_from_ppm: orm.Mapped[int | None]
