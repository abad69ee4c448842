# SPDX-License-Identifier: Apache-2.0

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
        sa.String(base.WORD_CHARS), primary_key=True
    )
    value: orm.Mapped[int]


class Host(base.Base):
    """A host, as its agent reports it.

    ``reported_at`` is when the agent made its last report, ``received_at``
    when that came; both by the collector's clock.
    ``listed_at`` is when the agent last sent its list of instances.
    ``jobs_generation`` counts the changes of what operators want of it.
    ``last_batch`` is the newest batch as the collector numbers them, which
    is ``batch_offset`` more than the agent's number in its ``epoch``;
    ``replaced_epochs`` has those before, each with the agent's number of its
    newest batch. See :mod:`vsched_api.operations.numbering`.
    ``info`` is a ``messages.HostInfo``. ``clock_skew_s`` is by how much the
    host's clock was ahead of the collector's when it last reported; None
    when that is not known. A host that was deleted has ``deleted_at`` and
    a name that no host can have, until all that belongs to it is gone.
    """

    __tablename__ = 'hosts'
    __table_args__ = base.with_options(
        sa.UniqueConstraint('name', name='uniq_hosts0name')
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(base.NAME_CHARS))
    last_batch: orm.Mapped[int]
    reported_at: orm.Mapped[float | None]
    received_at: orm.Mapped[float | None]
    listed_at: orm.Mapped[float | None]
    overrides_generation: orm.Mapped[int]
    # A new host was asked for nothing.
    jobs_generation: orm.Mapped[int] = orm.mapped_column(
        server_default=sa.text('0')
    )
    info: orm.Mapped[dict[str, ty.Any] | None]
    epoch: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    # The first epoch of a host has no offset.
    batch_offset: orm.Mapped[int] = orm.mapped_column(
        server_default=sa.text('0')
    )
    replaced_epochs: orm.Mapped[list[ty.Any] | None]
    clock_skew_s: orm.Mapped[float | None]
    deleted_at: orm.Mapped[float | None]

    @property
    def known(self) -> bool:
        """Whether it reported its properties and its instances."""
        return self.info is not None and self.listed_at is not None


class SnapshotHost(base.Base):
    """A host in the snapshot that schedulers use.

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
        sa.UniqueConstraint('version', name='uniq_snapshot_hosts0version')
    )

    host_id: orm.Mapped[int] = orm.mapped_column(
        base.Id,
        sa.ForeignKey('hosts.id', name='snapshot_hosts_host_id_fk'),
        primary_key=True,
        autoincrement=False,
    )
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
    ``server_name``, ``project_id`` and ``flavor_name`` are Nova's; NULL where
    an agent did not report them.
    """

    __tablename__ = 'instances'
    __table_args__ = base.with_options(
        sa.UniqueConstraint(
            'uuid', 'host_id', name='uniq_instances0uuid0host_id'
        ),
        sa.Index('instances_host_id_idx', 'host_id'),
        sa.Index('instances_left_at_idx', 'left_at'),
        sa.Index('instances_project_id_idx', 'project_id', 'uuid'),
        sa.Index('instances_server_name_idx', 'server_name', 'uuid'),
        sa.Index('instances_flavor_name_idx', 'flavor_name', 'uuid'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(base.UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='instances_host_id_fk')
    )
    name: orm.Mapped[str] = orm.mapped_column(sa.String(base.NAME_CHARS))
    vcpus: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    workload_class: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    server_name: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.NAME_CHARS)
    )
    project_id: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    flavor_name: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.NAME_CHARS)
    )
    present: orm.Mapped[bool]
    # Since when Nova has it on another host, or does not have it.
    contradicted_at: orm.Mapped[float | None]
    arrived_at: orm.Mapped[float]
    left_at: orm.Mapped[float | None]

    host: orm.Mapped[Host] = orm.relationship(lazy='raise')


class Reservation(base.Base):
    """The last ``messages.ReservationReport`` of an instance on a host."""

    __tablename__ = 'reservations'

    instance_id: orm.Mapped[int] = orm.mapped_column(
        base.Id,
        sa.ForeignKey(
            'instances.id',
            name='reservations_instance_id_fk',
            ondelete='CASCADE',
        ),
        primary_key=True,
        autoincrement=False,
    )
    source: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    state: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    vcpus: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    since: orm.Mapped[float]
    generation: orm.Mapped[int]
    runtime_us: orm.Mapped[int | None]
    period_us: orm.Mapped[int | None]
    mode: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    enforced_backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    enforced_runtime_us: orm.Mapped[int | None]
    enforced_period_us: orm.Mapped[int | None]
    attested_at: orm.Mapped[float | None]
    code: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    detail: orm.Mapped[str | None] = orm.mapped_column(sa.Text)
    figures: orm.Mapped[dict[str, ty.Any]]
    io: orm.Mapped[dict[str, ty.Any] | None]
    communication: orm.Mapped[dict[str, ty.Any] | None]


class Override(base.Authored, base.Base):
    """What an operator set in place of the flavor's extra specs.

    It belongs to the instance and goes with it from host to host. ``specs``
    has values of ``extra_specs.OVERRIDABLE`` as text, those that are set.
    """

    __tablename__ = 'overrides'

    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.UUID_CHARS), primary_key=True
    )
    generation: orm.Mapped[int]
    runtime_us: orm.Mapped[int]
    period_us: orm.Mapped[int]
    mode: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    backend: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.WORD_CHARS)
    )
    specs: orm.Mapped[dict[str, ty.Any] | None]
    created_at: orm.Mapped[float]
    updated_at: orm.Mapped[float]


class Event(base.Base):
    """An event of an agent, or of the collector about its reports."""

    __tablename__ = 'events'
    __table_args__ = base.with_options(
        sa.UniqueConstraint('uuid', name='uniq_events0uuid'),
        sa.Index('events_at_idx', 'at', 'id'),
        sa.Index('events_code_idx', 'code', 'at', 'id'),
        sa.Index('events_instance_uuid_idx', 'instance_uuid', 'at'),
        sa.Index('events_host_id_idx', 'host_id', 'at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(base.UUID_CHARS))
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='events_host_id_fk')
    )
    instance_uuid: orm.Mapped[str | None] = orm.mapped_column(
        sa.String(base.UUID_CHARS)
    )
    at: orm.Mapped[float]
    code: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    severity: orm.Mapped[str] = orm.mapped_column(sa.String(base.WORD_CHARS))
    detail: orm.Mapped[str] = orm.mapped_column(sa.Text)
    figures: orm.Mapped[dict[str, ty.Any]]
