# SPDX-License-Identifier: Apache-2.0

"""Table of the comparisons of hosts' reports with Nova and placement."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db.models import base


class HostVerification(base.Base):
    """The last comparison of a host's reports with Nova and placement.

    ``checked_at`` is when it began, by the collector's clock. ``cpus`` is how
    many CPUs the compute node has for instances there; None when unknown.
    ``reported_mcpu`` is the capacity that the agent last reported: the host's
    ``info`` has the bounded one. ``contradictions`` are objects with a
    ``code`` and a ``detail``.
    """

    __tablename__ = 'host_verifications'

    host_id: orm.Mapped[int] = orm.mapped_column(
        base.Id,
        sa.ForeignKey(
            'hosts.id',
            name='host_verifications_host_id_fk',
            ondelete='CASCADE',
        ),
        primary_key=True,
        autoincrement=False,
    )
    checked_at: orm.Mapped[float]
    cpus: orm.Mapped[int | None]
    reported_mcpu: orm.Mapped[int | None]
    contradictions: orm.Mapped[list[ty.Any] | None]
