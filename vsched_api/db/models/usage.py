# SPDX-License-Identifier: Apache-2.0

"""Tables of CPU time."""

import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db.models import base


def _none() -> ty.Any:
    return orm.mapped_column(server_default=sa.text('0'))


class UsageSecond(base.Base):
    """CPU time of instances of one host, of intervals that ended together.

    In one second: after ``at - 1``, and at ``at`` or before. ``samples``
    holds ``count`` of them, packed by :mod:`vsched_api.db.packing`: a row
    for each of them would cost the database ten times as much, and no
    query selects a sample but by its host and its time. There are several rows
    of one second when they came in several batches, or are very many.
    ``executions`` holds theirs, and is None when the agent does not report
    any, or a collector of an earlier release stored the row.

    ``batch`` is the one that they came with.
    """

    __tablename__ = 'usage_seconds'
    __table_args__ = base.with_options(
        sa.Index('usage_seconds_host_id_idx', 'host_id', 'at'),
        sa.Index('usage_seconds_batch_idx', 'host_id', 'batch'),
        sa.Index('usage_seconds_at_idx', 'at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='usage_seconds_host_id_fk')
    )
    batch: orm.Mapped[int]
    at: orm.Mapped[float]
    count: orm.Mapped[int]
    samples: orm.Mapped[str] = orm.mapped_column(base.LongText)
    executions: orm.Mapped[str | None] = orm.mapped_column(base.LongText)


class HostTimeSample(base.Base):
    """A ``messages.HostUsage``: what the CPUs of a host did."""

    __tablename__ = 'host_time_samples'
    __table_args__ = base.with_options(
        sa.Index('host_time_samples_host_id_idx', 'host_id', 'at'),
        sa.Index('host_time_samples_batch_idx', 'host_id', 'batch'),
        sa.Index('host_time_samples_at_idx', 'at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='host_time_samples_host_id_fk')
    )
    batch: orm.Mapped[int]
    at: orm.Mapped[float]
    interval_us: orm.Mapped[int]
    cpus: orm.Mapped[int]
    idle_us: orm.Mapped[int]
    steal_us: orm.Mapped[int]
    irq_us: orm.Mapped[int]
    guest_us: orm.Mapped[int]
    direct_us: orm.Mapped[int]
    shared_us: orm.Mapped[int]
    own_us: orm.Mapped[int]


class UsageFold(base.Base):
    """Up to which ``batch`` the samples of a host are in the buckets."""

    __tablename__ = 'usage_folds'

    host_id: orm.Mapped[int] = orm.mapped_column(
        base.Id,
        sa.ForeignKey('hosts.id', name='usage_folds_host_id_fk'),
        primary_key=True,
        autoincrement=False,
    )
    batch: orm.Mapped[int]


class _Sums:
    """Sums over samples whose intervals ended in one stretch of time.

    ``at`` is the end of the stretch and ``length_s`` how long it is: it
    holds what ended after ``at - length_s``, and at ``at`` or before.
    ``first_at`` is when the first interval began, ``last_at`` when the last
    one ended. ``promised_guest_us`` is that part of ``guest_us`` that stands
    beside a promise; ``promised_us`` is None when nothing does.
    ``counted_samples`` is the number of samples whose executions are known:
    those sums are complete when it is ``samples``. An earlier release that
    adds samples does not change it.
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
    # What is not counted is none.
    direct_us: orm.Mapped[int] = _none()
    direct_wait_us: orm.Mapped[int] = _none()
    shared_us: orm.Mapped[int] = _none()
    wakeups: orm.Mapped[int] = _none()
    net_rx_packets: orm.Mapped[int] = _none()
    net_tx_packets: orm.Mapped[int] = _none()
    disk_read_requests: orm.Mapped[int] = _none()
    disk_write_requests: orm.Mapped[int] = _none()
    counted_samples: orm.Mapped[int] = _none()
    executions: orm.Mapped[int] = _none()
    emulator_wakeups: orm.Mapped[int] = _none()
    emulator_wait_us: orm.Mapped[int] = _none()
    iothread_wakeups: orm.Mapped[int] = _none()
    iothread_wait_us: orm.Mapped[int] = _none()
    vhost_wakeups: orm.Mapped[int] = _none()
    vhost_wait_us: orm.Mapped[int] = _none()


class UsageBucket(_Sums, base.Base):
    """What one instance used on one host in a minute, or in an hour."""

    __tablename__ = 'usage_buckets'
    __table_args__ = base.with_options(
        sa.UniqueConstraint(
            'host_id',
            'length_s',
            'at',
            'instance_uuid',
            name='uniq_usage_buckets0host_id0length_s0at0instance_uuid',
        ),
        sa.Index(
            'usage_buckets_instance_uuid_idx',
            'instance_uuid',
            'length_s',
            'at',
        ),
        sa.Index('usage_buckets_at_idx', 'length_s', 'at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='usage_buckets_host_id_fk')
    )
    instance_uuid: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.UUID_CHARS)
    )


class HostUsageBucket(_Sums, base.Base):
    """What all instances of a host used in a minute, or in an hour.

    ``instances`` is how many of them there were.
    """

    __tablename__ = 'host_usage_buckets'
    __table_args__ = base.with_options(
        sa.UniqueConstraint(
            'host_id',
            'length_s',
            'at',
            name='uniq_host_usage_buckets0host_id0length_s0at',
        ),
        sa.Index('host_usage_buckets_at_idx', 'length_s', 'at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='host_usage_buckets_host_id_fk')
    )
    instances: orm.Mapped[int]


class HostTimeBucket(base.Base):
    """What the CPUs of a host did in a minute, or in an hour.

    As :class:`HostTimeSample`, summed up. ``cpu_us`` is the CPUs times the
    intervals; ``at``, ``length_s``, ``samples``, ``first_at`` and
    ``last_at`` as in the buckets of instances.
    """

    __tablename__ = 'host_time_buckets'
    __table_args__ = base.with_options(
        sa.UniqueConstraint(
            'host_id',
            'length_s',
            'at',
            name='uniq_host_time_buckets0host_id0length_s0at',
        ),
        sa.Index('host_time_buckets_at_idx', 'length_s', 'at'),
    )

    id: orm.Mapped[int] = orm.mapped_column(base.Id, primary_key=True)
    host_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey('hosts.id', name='host_time_buckets_host_id_fk')
    )
    length_s: orm.Mapped[int]
    at: orm.Mapped[float]
    samples: orm.Mapped[int]
    first_at: orm.Mapped[float]
    last_at: orm.Mapped[float]
    interval_us: orm.Mapped[int]
    cpu_us: orm.Mapped[int]
    idle_us: orm.Mapped[int]
    steal_us: orm.Mapped[int]
    irq_us: orm.Mapped[int]
    guest_us: orm.Mapped[int]
    direct_us: orm.Mapped[int]
    shared_us: orm.Mapped[int]
    own_us: orm.Mapped[int]


class Slowdown(base.Base):
    """How much one neighbour of a workload class slows another down.

    ``slowdown`` is a part of the time alone; ``samples`` are those that it
    rests on, see :mod:`vsched_lib.model.interference`.
    """

    __tablename__ = 'slowdowns'

    victim: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.WORD_CHARS), primary_key=True
    )
    neighbour: orm.Mapped[str] = orm.mapped_column(
        sa.String(base.WORD_CHARS), primary_key=True
    )
    slowdown: orm.Mapped[float]
    samples: orm.Mapped[float]
