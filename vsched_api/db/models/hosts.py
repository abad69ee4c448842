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

"""Tables of hosts, of their instances, and of what happened."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db.models import base


class Counter(base.Base):
    """Numbers that are handed out once each.

    Whoever takes one holds its row until the transaction ends, which also
    orders these transactions one after another.
    """

    __tablename__ = 'counters'

    name: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.WORD_CHARS), primary_key=True)
    value: orm.Mapped[int]


class Host(base.Base):
    """A host, as its agent tells of it.

    ``reported_at`` is the agent's clock, ``received_at`` the collector's.
    ``listed_at`` is when the agent last sent its list of instances.
    ``jobs_generation`` counts the changes of what operators want of it.
    ``info`` is a ``messages.HostInfo``.
    """

    __tablename__ = 'hosts'
    __table_args__ = base.with_options(
        sa.UniqueConstraint('name', name='uniq_hosts0name'))

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(base.NAME_CHARS))
    last_batch: orm.Mapped[int]
    reported_at: orm.Mapped[float | None]
    received_at: orm.Mapped[float | None]
    listed_at: orm.Mapped[float | None]
    overrides_generation: orm.Mapped[int]
    # The default is for rows of a release without jobs.
    jobs_generation: orm.Mapped[int] = orm.mapped_column(
        server_default=sa.text('0'))
    info: orm.Mapped[dict[str, ty.Any] | None]


class SnapshotHost(base.Base):
    """What schedulers are told of a host.

    ``version`` is that of its last change; there are no two of one version.
    The texts are JSON as it is sent: ``facts`` and ``certificates`` of
    :mod:`vsched_lib.contract.snapshot`, and ``prices_ns``. Profiles are of
    the host while it has the facts in ``measured``: those that its errors
    were measured with, and those of its I/O. ``certified`` says whether it
    has the former; without the latter there are no prices. The certificates
    hold with ``confidence``.
    """

    __tablename__ = 'snapshot_hosts'
    __table_args__ = base.with_options(
        sa.UniqueConstraint('version', name='uniq_snapshot_hosts0version'))

    host_id: orm.Mapped[int] = orm.mapped_column(
        base.Id, sa.ForeignKey('hosts.id', name='snapshot_hosts_host_id_fk'),
        primary_key=True, autoincrement=False)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(base.NAME_CHARS))
    version: orm.Mapped[int]
    removed: orm.Mapped[bool]
    admitted_mcpu: orm.Mapped[int]
    facts: orm.Mapped[str] = orm.mapped_column(sa.Text)
    certificates: orm.Mapped[str] = orm.mapped_column(base.LongText)
    measured: orm.Mapped[dict[str, ty.Any] | None]
    certified: orm.Mapped[bool]
    confidence: orm.Mapped[float]
    prices_ns: orm.Mapped[str | None] = orm.mapped_column(sa.Text)


class Instance(base.Base):
    """One instance as one host lists it.

    While an instance migrates two hosts list it, each with a row of its
    own, so that neither's report undoes the other's.
    """

    __tablename__ = 'instances'
    __table_args__ = base.with_options(
        sa.UniqueConstraint(
            'uuid', 'host_id', name='uniq_instances0uuid0host_id'),
        sa.Index('instances_host_id_idx', 'host_id'),
        sa.Index('instances_left_at_idx', 'left_at'))

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(base.UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='instances_host_id_fk'))
    name: orm.Mapped[str] = orm.mapped_column(sa.String(base.NAME_CHARS))
    vcpus: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    workload_class: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS))
    present: orm.Mapped[bool]
    arrived_at: orm.Mapped[float]
    left_at: orm.Mapped[float | None]

    host: orm.Mapped[Host] = orm.relationship(lazy='raise')


class Reservation(base.Base):
    """The last ``messages.ReservationReport`` of an instance on a host."""

    __tablename__ = 'reservations'

    instance_id: orm.Mapped[int] = orm.mapped_column(
        base.Id, sa.ForeignKey(
            'instances.id', name='reservations_instance_id_fk',
            ondelete='CASCADE'),
        primary_key=True, autoincrement=False)
    source: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    state: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    vcpus: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    since: orm.Mapped[float]
    generation: orm.Mapped[int]
    runtime_us: orm.Mapped[int | None]
    period_us: orm.Mapped[int | None]
    mode: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS))
    backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS))
    enforced_backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS))
    enforced_runtime_us: orm.Mapped[int | None]
    enforced_period_us: orm.Mapped[int | None]
    attested_at: orm.Mapped[float | None]
    code: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS))
    detail: orm.Mapped[str | None] = orm.mapped_column(sa.Text)
    figures: orm.Mapped[dict[str, ty.Any]]
    io: orm.Mapped[dict[str, ty.Any] | None]


class Override(base.Base):
    """What an operator wants instead of what the flavor says.

    It belongs to the instance and goes with it from host to host.
    """

    __tablename__ = 'overrides'

    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.UUID_CHARS), primary_key=True)
    generation: orm.Mapped[int]
    runtime_us: orm.Mapped[int]
    period_us: orm.Mapped[int]
    mode: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS))
    created_at: orm.Mapped[float]
    updated_at: orm.Mapped[float]


class Event(base.Base):
    """Something an agent, or the collector about its reports, told."""

    __tablename__ = 'events'
    __table_args__ = base.with_options(
        sa.UniqueConstraint('uuid', name='uniq_events0uuid'),
        sa.Index('events_at_idx', 'at', 'id'),
        sa.Index('events_instance_uuid_idx', 'instance_uuid', 'at'),
        sa.Index('events_host_id_idx', 'host_id', 'at'))

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(base.UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='events_host_id_fk'))
    instance_uuid: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.UUID_CHARS))
    at: orm.Mapped[float]
    code: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    severity: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    detail: orm.Mapped[str] = orm.mapped_column(sa.Text)
    figures: orm.Mapped[dict[str, ty.Any]]
