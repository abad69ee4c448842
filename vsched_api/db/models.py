# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The tables.

Times are seconds since the epoch (UTC) in double precision, as on the bus,
so that they compare alike on every database. Values in microseconds and
counters are 64 bits wide.
"""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

# SQLite numbers the rows of a column by itself only when its type is
# INTEGER, which is 64 bits wide there.
_Id = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')

#: Longest name of a host, an instance, a code.
NAME_CHARS = 255
UUID_CHARS = 36
WORD_CHARS = 64


class Base(orm.DeclarativeBase):
    """Base of all tables."""

    # Names and UUIDs compare byte by byte, as on the other databases.
    __table_args__: ty.Any = {
        'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
        'mysql_collate': 'utf8mb4_bin'}
    type_annotation_map: ty.ClassVar[dict[ty.Any, ty.Any]] = {
        int: sa.BigInteger(), float: sa.Double(), bool: sa.Boolean(),
        dict[str, ty.Any]: sa.JSON(none_as_null=True),
        list[ty.Any]: sa.JSON(none_as_null=True)}


def _with(*extras: ty.Any) -> tuple[ty.Any, ...]:
    return (*extras, Base.__table_args__)


class Counter(Base):
    """Numbers that are handed out once each.

    Whoever takes one holds its row until the transaction ends, which also
    orders these transactions one after another.
    """

    __tablename__ = 'counters'

    name: orm.Mapped[str] = orm.mapped_column(
        sa.String(WORD_CHARS), primary_key=True)
    value: orm.Mapped[int]


class Host(Base):
    """A host, as its agent tells of it.

    ``reported_at`` is the agent's clock, ``received_at`` the collector's.
    ``listed_at`` is when the agent last sent its list of instances.
    ``jobs_generation`` counts the changes of what operators want of it.
    ``info`` is a ``messages.HostInfo``.
    """

    __tablename__ = 'hosts'
    __table_args__ = _with(
        sa.UniqueConstraint('name', name='uniq_hosts0name'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(NAME_CHARS))
    last_batch: orm.Mapped[int]
    reported_at: orm.Mapped[float | None]
    received_at: orm.Mapped[float | None]
    listed_at: orm.Mapped[float | None]
    overrides_generation: orm.Mapped[int]
    # The default is for rows of a release without jobs.
    jobs_generation: orm.Mapped[int] = orm.mapped_column(
        server_default=sa.text('0'))
    info: orm.Mapped[dict[str, ty.Any] | None]


class Instance(Base):
    """One instance as one host lists it.

    While an instance migrates two hosts list it, each with a row of its
    own, so that neither's report undoes the other's.
    """

    __tablename__ = 'instances'
    __table_args__ = _with(
        sa.UniqueConstraint(
            'uuid', 'host_id', name='uniq_instances0uuid0host_id'),
        sa.Index('instances_host_id_idx', 'host_id'),
        sa.Index('instances_left_at_idx', 'left_at'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='instances_host_id_fk'))
    name: orm.Mapped[str] = orm.mapped_column(sa.String(NAME_CHARS))
    vcpus: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    present: orm.Mapped[bool]
    arrived_at: orm.Mapped[float]
    left_at: orm.Mapped[float | None]

    host: orm.Mapped[Host] = orm.relationship(lazy='raise')


class Reservation(Base):
    """The last ``messages.ReservationReport`` of an instance on a host."""

    __tablename__ = 'reservations'

    instance_id: orm.Mapped[int] = orm.mapped_column(
        _Id, sa.ForeignKey('instances.id', name='reservations_instance_id_fk',
                           ondelete='CASCADE'),
        primary_key=True, autoincrement=False)
    source: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    state: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    vcpus: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    since: orm.Mapped[float]
    generation: orm.Mapped[int]
    runtime_us: orm.Mapped[int | None]
    period_us: orm.Mapped[int | None]
    mode: orm.Mapped[str | None] = orm.mapped_column(sa.String(WORD_CHARS))
    backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(WORD_CHARS))
    enforced_backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(WORD_CHARS))
    enforced_runtime_us: orm.Mapped[int | None]
    enforced_period_us: orm.Mapped[int | None]
    attested_at: orm.Mapped[float | None]
    code: orm.Mapped[str | None] = orm.mapped_column(sa.String(WORD_CHARS))
    detail: orm.Mapped[str | None] = orm.mapped_column(sa.Text)
    figures: orm.Mapped[dict[str, ty.Any]]


class Override(Base):
    """What an operator wants instead of what the flavor says.

    It belongs to the instance and goes with it from host to host.
    """

    __tablename__ = 'overrides'

    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(UUID_CHARS), primary_key=True)
    generation: orm.Mapped[int]
    runtime_us: orm.Mapped[int]
    period_us: orm.Mapped[int]
    mode: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(WORD_CHARS))
    created_at: orm.Mapped[float]
    updated_at: orm.Mapped[float]


class Event(Base):
    """Something an agent, or the collector about its reports, told."""

    __tablename__ = 'events'
    __table_args__ = _with(
        sa.UniqueConstraint('uuid', name='uniq_events0uuid'),
        sa.Index('events_at_idx', 'at', 'id'),
        sa.Index('events_instance_uuid_idx', 'instance_uuid', 'at'),
        sa.Index('events_host_id_idx', 'host_id', 'at'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='events_host_id_fk'))
    instance_uuid: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(UUID_CHARS))
    at: orm.Mapped[float]
    code: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    severity: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    detail: orm.Mapped[str] = orm.mapped_column(sa.Text)
    figures: orm.Mapped[dict[str, ty.Any]]


class UsageSample(Base):
    """CPU time of one instance in one interval.

    ``batch`` is the one that it came with; 0, which is in no bucket, when an
    older release stored it.
    """

    __tablename__ = 'usage_samples'
    __table_args__ = _with(
        sa.Index('usage_samples_instance_uuid_idx', 'instance_uuid', 'at'),
        sa.Index('usage_samples_host_id_idx', 'host_id', 'at'),
        sa.Index('usage_samples_batch_idx', 'host_id', 'batch'),
        sa.Index('usage_samples_at_idx', 'at'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='usage_samples_host_id_fk'))
    batch: orm.Mapped[int] = orm.mapped_column(server_default=sa.text('0'))
    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(UUID_CHARS))
    at: orm.Mapped[float]
    interval_us: orm.Mapped[int]
    guest_us: orm.Mapped[int]
    wait_us: orm.Mapped[int]
    promised_us: orm.Mapped[int | None]


class UsageFold(Base):
    """Up to which ``batch`` the samples of a host are in the buckets."""

    __tablename__ = 'usage_folds'

    host_id: orm.Mapped[int] = orm.mapped_column(
        _Id, sa.ForeignKey('hosts.id', name='usage_folds_host_id_fk'),
        primary_key=True, autoincrement=False)
    batch: orm.Mapped[int]


class _Sums:
    """Sums over samples whose intervals ended in one stretch of time.

    ``at`` is the end of the stretch and ``length_s`` how long it is: it
    holds what ended after ``at - length_s``, and at ``at`` or before.
    ``first_at`` is when the first interval began, ``last_at`` when the last
    one ended. ``promised_guest_us`` is that part of ``guest_us`` that stands
    beside a promise; ``promised_us`` is None when nothing does.
    """

    length_s: orm.Mapped[int]
    at: orm.Mapped[float]
    samples: orm.Mapped[int]
    first_at: orm.Mapped[float]
    last_at: orm.Mapped[float]
    interval_us: orm.Mapped[int]
    guest_us: orm.Mapped[int]
    wait_us: orm.Mapped[int]
    promised_us: orm.Mapped[int | None]
    promised_guest_us: orm.Mapped[int]


class UsageBucket(_Sums, Base):
    """What one instance used on one host in a minute, or in an hour."""

    __tablename__ = 'usage_buckets'
    __table_args__ = _with(
        sa.UniqueConstraint(
            'host_id', 'length_s', 'at', 'instance_uuid',
            name='uniq_usage_buckets0host_id0length_s0at0instance_uuid'),
        sa.Index('usage_buckets_instance_uuid_idx', 'instance_uuid',
                 'length_s', 'at'),
        sa.Index('usage_buckets_at_idx', 'length_s', 'at'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='usage_buckets_host_id_fk'))
    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(UUID_CHARS))


class HostUsageBucket(_Sums, Base):
    """What all instances of a host used in a minute, or in an hour.

    ``instances`` is how many of them there were.
    """

    __tablename__ = 'host_usage_buckets'
    __table_args__ = _with(
        sa.UniqueConstraint(
            'host_id', 'length_s', 'at',
            name='uniq_host_usage_buckets0host_id0length_s0at'),
        sa.Index('host_usage_buckets_at_idx', 'length_s', 'at'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='host_usage_buckets_host_id_fk'))
    instances: orm.Mapped[int]


class Job(Base):
    """Something an operator wants a host to do, and how far it has got.

    Both times are of this side's clock: ``updated_at`` is when it was last
    ordered or reported on.
    """

    __tablename__ = 'jobs'
    __table_args__ = _with(
        sa.UniqueConstraint('uuid', name='uniq_jobs0uuid'),
        sa.Index('jobs_host_id_idx', 'host_id', 'state'),
        sa.Index('jobs_updated_at_idx', 'updated_at'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='jobs_host_id_fk'))
    kind: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    wanted: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    state: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    attempt: orm.Mapped[int]
    parameters: orm.Mapped[dict[str, ty.Any]]
    progress_ppm: orm.Mapped[int]
    detail: orm.Mapped[str] = orm.mapped_column(sa.Text)
    created_at: orm.Mapped[float]
    updated_at: orm.Mapped[float]


class ErrorProfile(Base):
    """A ``messages.ErrorProfile`` of a host, without its points.

    The newest of a source is the one with the highest ``id``, which was
    stored last: neither the agent's clock nor its count of versions, which
    begins anew with its journal, can hide a later one.
    """

    __tablename__ = 'error_profiles'
    __table_args__ = _with(
        sa.UniqueConstraint('uuid', name='uniq_error_profiles0uuid'),
        sa.Index('error_profiles_host_id_idx', 'host_id', 'source', 'id'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='error_profiles_host_id_fk'))
    version: orm.Mapped[int]
    source: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    started_at: orm.Mapped[float]
    finished_at: orm.Mapped[float]
    kernel: orm.Mapped[str] = orm.mapped_column(sa.String(NAME_CHARS))
    tick_us: orm.Mapped[int]
    cpus: orm.Mapped[int]
    load: orm.Mapped[float]
    quick: orm.Mapped[bool]
    complete: orm.Mapped[bool]
    features: orm.Mapped[dict[str, ty.Any]]
    notes: orm.Mapped[list[ty.Any]]


class ErrorPoint(Base):
    """A ``messages.ErrorPoint`` of a profile; ``id`` is in their order."""

    __tablename__ = 'error_points'
    __table_args__ = _with(
        sa.Index('error_points_profile_id_idx', 'profile_id', 'id'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    profile_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('error_profiles.id', name='error_points_profile_id_fk',
                      ondelete='CASCADE'))
    backend: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
    period_us: orm.Mapped[int]
    share_ppm: orm.Mapped[int]
    contenders: orm.Mapped[int]
    probe: orm.Mapped[str] = orm.mapped_column(sa.String(WORD_CHARS))
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
