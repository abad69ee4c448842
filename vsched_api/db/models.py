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
        dict[str, ty.Any]: sa.JSON(none_as_null=True)}


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
    """CPU time of one instance in one interval."""

    __tablename__ = 'usage_samples'
    __table_args__ = _with(
        sa.Index('usage_samples_instance_uuid_idx', 'instance_uuid', 'at'),
        sa.Index('usage_samples_host_id_idx', 'host_id', 'at'),
        sa.Index('usage_samples_at_idx', 'at'))

    id: orm.Mapped[int] = orm.mapped_column(_Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='usage_samples_host_id_fk'))
    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(UUID_CHARS))
    at: orm.Mapped[float]
    interval_us: orm.Mapped[int]
    guest_us: orm.Mapped[int]
    wait_us: orm.Mapped[int]
    promised_us: orm.Mapped[int | None]
