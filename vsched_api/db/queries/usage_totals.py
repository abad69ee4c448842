# SPDX-License-Identifier: Apache-2.0

"""Rows of the newest samples of many hosts."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db.queries import instances

_host = models.Host
_row = models.UsageSecond

#: How many rows one statement reads the samples of.
_CHUNK = 500


class Host(ty.NamedTuple):
    """A host, and the end of the newest second that has samples of it.

    :param newest: in seconds since the epoch; None without samples.
    """

    id: int
    name: str
    newest: float | None


class Second(ty.NamedTuple):
    """A row of samples of one second; ``size`` is how many it has."""

    id: int
    at: float
    size: int


def hosts(
    session: orm.Session,
    limit: int,
    after: int | None,
    since: float,
    name: str | None = None,
    instance_uuids: Collection[str] = (),
    **server: str | None,
) -> Sequence[Host]:
    """Hosts in the order of their ids.

    :param after: id of the last one of the page before.
    :param since: only those that have reported since then; does not matter
        when one is named.
    :param name: only the host of this name.
    :param instance_uuids: only those that list one of these instances or
        once did; none for all. So do ``server``, as of
        :func:`instances.uuids`.
    """
    # Not a maximum: MariaDB would read all the host's times for it.
    newest = (
        sa.select(_row.at)
        .where(_row.host_id == _host.id)
        .order_by(_row.at.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = (
        sa.select(_host.id, _host.name, newest)
        .where(_host.deleted_at.is_(None))
        .order_by(_host.id)
        .limit(limit)
    )
    if after is not None:
        query = query.where(_host.id > after)
    if name is not None:
        query = query.where(_host.name == name)
    else:
        query = query.where(sa.func.coalesce(_host.received_at, 0.0) >= since)
    listed = orm.aliased(models.Instance)
    selection = instances.among(listed.uuid, instance_uuids, **server)
    if selection:
        query = query.where(
            _host.id.in_(sa.select(listed.host_id).where(*selection))
        )
    return [Host(*found) for found in session.execute(query)]


def seconds(
    session: orm.Session, starts: Mapping[int, float]
) -> dict[int, list[Second]]:
    """Return the rows of hosts that end after a time, the newest first.

    Without their samples.

    :param starts: by the id of the host, in seconds since the epoch.
    """
    if not starts:
        return {}
    found: dict[int, list[Second]] = {host_id: [] for host_id in starts}
    query = (
        sa.select(_row.host_id, _row.id, _row.at, _row.count)
        .where(
            sa.or_(
                *(
                    sa.and_(_row.host_id == host_id, _row.at > start)
                    for host_id, start in starts.items()
                )
            )
        )
        .order_by(_row.host_id, _row.at.desc(), _row.id.desc())
    )
    for host_id, *more in session.execute(query):
        found[host_id].append(Second(*more))
    return found


def samples(session: orm.Session, ids: Sequence[int]) -> dict[int, str]:
    """Return the packed samples of rows, by the ids of those."""
    return {
        number: text
        for first in range(0, len(ids), _CHUNK)
        for number, text in session.execute(
            sa.select(_row.id, _row.samples).where(
                _row.id.in_(ids[first : first + _CHUNK])
            )
        )
    }
