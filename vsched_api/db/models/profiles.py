# SPDX-License-Identifier: Apache-2.0

"""Tables of what hosts measured of themselves."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db.models import base


class Profile:
    """What the tables of profiles have in common.

    The newest of a source is the one with the highest ``id``, which was
    stored last: neither the agent's clock nor its count of versions, which
    begins anew with its journal, can hide a later one.
    """

    __tablename__: str

    @orm.declared_attr.directive
    def __table_args__(cls) -> ty.Any:
        return base.with_options(
            sa.UniqueConstraint(
                'uuid', name='uniq_%s0uuid' % cls.__tablename__
            ),
            sa.Index(
                '%s_host_id_idx' % cls.__tablename__, 'host_id', 'source', 'id'
            ),
        )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(base.UUID_CHARS))

    @orm.declared_attr
    def host_id(cls) -> orm.Mapped[int]:
        """The host that it is of."""
        return orm.mapped_column(
            sa.ForeignKey('hosts.id', name='%s_host_id_fk' % cls.__tablename__)
        )

    version: orm.Mapped[int]
    source: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    started_at: orm.Mapped[float]
    finished_at: orm.Mapped[float]
    kernel: orm.Mapped[str] = orm.mapped_column(sa.String(base.NAME_CHARS))
    tick_us: orm.Mapped[int]
    cpus: orm.Mapped[int]
    load: orm.Mapped[float]
    quick: orm.Mapped[bool]
    complete: orm.Mapped[bool]
    features: orm.Mapped[dict[str, ty.Any]]
    notes: orm.Mapped[list[ty.Any]]


class ErrorProfile(Profile, base.Base):
    """A ``profiles.ErrorProfile`` of a host, without its points."""

    __tablename__ = 'error_profiles'


class OverheadProfile(Profile, base.Base):
    """A ``profiles.OverheadProfile`` of a host, whole.

    Nothing is asked of its prices and points one by one.
    """

    __tablename__ = 'overhead_profiles'

    good: orm.Mapped[bool]
    r2: orm.Mapped[float]
    residual_ns: orm.Mapped[float]
    n: orm.Mapped[int]
    prices: orm.Mapped[list[ty.Any]]
    points: orm.Mapped[list[ty.Any]]


class ErrorPoint(base.Base):
    """A ``profiles.ErrorPoint`` of a profile; ``id`` is in their order."""

    __tablename__ = 'error_points'
    __table_args__ = base.with_options(
        sa.Index('error_points_profile_id_idx', 'profile_id', 'id')
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    profile_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey(
            'error_profiles.id',
            name='error_points_profile_id_fk',
            ondelete='CASCADE',
        )
    )
    backend: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    period_us: orm.Mapped[int]
    share_ppm: orm.Mapped[int]
    contenders: orm.Mapped[int]
    probe: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    window_us: orm.Mapped[int]
    n: orm.Mapped[int]
    mean_ppm: orm.Mapped[int]
    min_ppm: orm.Mapped[int]
    max_ppm: orm.Mapped[int]
    quantiles_ppm: orm.Mapped[list[ty.Any]]
    abs_p50_ppm: orm.Mapped[int]
    abs_p95_ppm: orm.Mapped[int]
    abs_p99_ppm: orm.Mapped[int]
    long_mean_ppm: orm.Mapped[int]
    counts: orm.Mapped[list[ty.Any]]
    lowest_ppm: orm.Mapped[list[ty.Any]]
    largest_ppm: orm.Mapped[list[ty.Any]]
