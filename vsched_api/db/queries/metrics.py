# SPDX-License-Identifier: Apache-2.0

"""Figures of all hosts, each kind of them by one statement."""

from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import usage_buckets

_host = models.Host

_MINUTE_S = 60

#: How much of a minute must be in a sum for it to be shown, in seconds:
#: shortly after it began a sum has few samples.
COVERED_S = 30.0


class Minute(ty.NamedTuple):
    """The newest minute of the instances of a host.

    :param at: its end, in seconds since the epoch.
    :param instances: how many instances used CPU time in it.
    """

    host: str
    at: float
    instances: int


class HostTime(ty.NamedTuple):
    """What the CPUs of a host did in its newest minute.

    :param at: its end, in seconds since the epoch.
    """

    host: str
    at: float
    interval_us: int
    idle_us: int
    steal_us: int
    guest_us: int
    direct_us: int
    shared_us: int
    own_us: int


class Usage(ty.NamedTuple):
    """What an instance used in the newest minute of its host.

    :param server_name: as Nova calls it; None where no agent reported it,
        as are the project and the flavor.
    """

    host: str
    instance_uuid: str
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None
    promised_guest_us: int
    direct_us: int
    shared_us: int
    server_name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None


# The fields of Usage that the rows of instances have.
_SERVER = frozenset(('server_name', 'project_id', 'flavor_name'))


class Snapshot(ty.NamedTuple):
    """A host in the snapshot that schedulers use.

    :param certified: whether it has certificates that hold.
    """

    host: str
    removed: bool
    certified: bool


def minutes(session: orm.Session, after: float) -> Sequence[Minute]:
    """Return the newest minute of each host.

    :param after: none that ended before it, in seconds since the epoch.
    """
    row = models.HostUsageBucket
    newest = _newest(row, after)
    return [
        Minute(*found)
        for found in session.execute(
            sa.select(_host.name, row.at, row.instances)
            .select_from(newest)
            .join(row, _is_newest(row, newest))
            .join(_host, _host.id == row.host_id)
            .where(_host.deleted_at.is_(None))
        )
    ]


def host_times(session: orm.Session, after: float) -> Sequence[HostTime]:
    """Return what the CPUs of each host did in its newest minute.

    :param after: as of :func:`minutes`.
    """
    row = models.HostTimeBucket
    newest = _newest(row, after)
    columns = [getattr(row, name) for name in HostTime._fields[1:]]
    return [
        HostTime(*found)
        for found in session.execute(
            sa.select(_host.name, *columns)
            .select_from(newest)
            .join(row, _is_newest(row, newest))
            .join(_host, _host.id == row.host_id)
            .where(_host.deleted_at.is_(None))
        )
    ]


def usage(session: orm.Session, after: float, limit: int) -> Sequence[Usage]:
    """Return what instances used in the newest minutes of their hosts.

    :param after: as of :func:`minutes`.
    :param limit: how many at most; the same ones as long as there are no
        others.
    """
    row = models.UsageBucket
    newest = _newest(models.HostUsageBucket, after)
    server = models.Instance
    columns = [
        getattr(server if name in _SERVER else row, name)
        for name in Usage._fields[1:]
    ]
    return [
        Usage(*found)
        for found in session.execute(
            sa.select(_host.name, *columns)
            .select_from(newest)
            .join(row, _is_newest(row, newest))
            .join(_host, _host.id == row.host_id)
            .outerjoin(
                server,
                sa.and_(
                    server.host_id == row.host_id,
                    server.uuid == row.instance_uuid,
                ),
            )
            .where(_host.deleted_at.is_(None))
            .order_by(row.host_id, row.instance_uuid)
            .limit(limit)
        )
    ]


def _newest(kind: usage_buckets.Kind, after: float) -> ty.Any:
    # Of hosts: a few rows of each, whatever the number of instances.
    row: ty.Any = kind
    return (
        sa.select(row.host_id, sa.func.max(row.at).label('at'))
        .where(
            row.length_s == _MINUTE_S,
            row.at > after,
            row.last_at - row.first_at >= COVERED_S,
        )
        .group_by(row.host_id)
        .subquery()
    )


def _is_newest(kind: usage_buckets.Kind, newest: ty.Any) -> ty.Any:
    row: ty.Any = kind
    return sa.and_(
        row.host_id == newest.c.host_id,
        row.length_s == _MINUTE_S,
        row.at == newest.c.at,
    )


def unfolded(session: orm.Session) -> dict[str, int]:
    """Return how many batches of each host are in no sum yet."""
    row = models.UsageFold
    return {
        name: max(0, last - folded)
        for name, last, folded in session.execute(
            sa.select(
                _host.name, _host.last_batch, sa.func.coalesce(row.batch, 0)
            )
            .outerjoin(row, row.host_id == _host.id)
            .where(_host.deleted_at.is_(None))
        )
    }


def events(
    session: orm.Session, after: float
) -> Sequence[tuple[str, str, int]]:
    """Return how many events each host had, as (host, code, count).

    :param after: of events after it, in seconds since the epoch.
    """
    row = models.Event
    return [
        (name, code, count)
        for name, code, count in session.execute(
            sa.select(_host.name, row.code, sa.func.count())
            .join(_host, _host.id == row.host_id)
            .where(row.at > after, _host.deleted_at.is_(None))
            .group_by(_host.name, row.code)
            .order_by(_host.name, row.code)
        )
    ]


def jobs(session: orm.Session) -> Sequence[tuple[str, str, int]]:
    """Return how many jobs are stored, as (kind, state, count)."""
    row = models.Job
    return [
        (kind, state, count)
        for kind, state, count in session.execute(
            sa.select(row.kind, row.state, sa.func.count())
            .join(_host, _host.id == row.host_id)
            .where(_host.deleted_at.is_(None))
            .group_by(row.kind, row.state)
        )
    ]


def snapshots(session: orm.Session) -> Sequence[Snapshot]:
    """Return the snapshot that schedulers use, by host."""
    row = models.SnapshotHost
    return [
        Snapshot(name, bool(removed), bool(certified) and certificates != '[]')
        for name, removed, certified, certificates in session.execute(
            sa.select(
                _host.name,
                row.removed,
                row.certified,
                # They are long: only whether there is any.
                sa.func.substr(row.certificates, 1, 2),
            )
            .join(_host, _host.id == row.host_id)
            .where(_host.deleted_at.is_(None))
        )
    ]
