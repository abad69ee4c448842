# SPDX-License-Identifier: Apache-2.0

"""Rows of samples of CPU time: those of a host in a second are one row."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import math
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models
from vsched_api.db import packing
from vsched_api.db.queries import host_deletion
from vsched_api.db.queries import instances

_row = models.UsageSecond
_table = ty.cast(sa.Table, _row.__table__)
_insert = _table.insert()
_OF_BATCHES = sa.select(
    _table.c.at, _table.c.samples, _table.c.executions
).where(
    _table.c.host_id == sa.bindparam('host_id'),
    _table.c.batch > sa.bindparam('after'),
    _table.c.batch <= sa.bindparam('last'),
)

# A sample's number is its row's with its place there behind it.
_PLACE_BITS = 20

# How many rows are looked at to see where the next seconds end.
_PAGE_ROWS = 64

_HOUR_S = 3600


class Found(ty.NamedTuple):
    """A sample, its number, and the host it is from."""

    sample: packing.Sample
    number: int
    host: str


class _Found(ty.NamedTuple):
    sample: packing.Sample
    number: int
    host_id: int


class Stored(ty.NamedTuple):
    """Samples as they are folded; ``at`` is the end of their second."""

    at: float
    samples: list[packing.Sample]


def page(
    session: orm.Session,
    limit: int,
    after: tuple[float, int] | None = None,
    newest_first: bool = False,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    start: float | None = None,
    end: float | None = None,
    **server: str | None,
) -> Sequence[Found]:
    """Samples in the order of time.

    :param after: time and number of the last one of the page before.
    :param start: seconds since the epoch; a sample counts when its
        interval ends after it.
    :param end: seconds since the epoch, inclusive.
    :param instance_uuids: none for all.
    :param server: as for :func:`instances.uuids`.
    """
    only = instances.selected(session, instance_uuids, **server)
    if only is not None and not only:
        return []
    query = _rows(
        session,
        host,
        None if only is None else {'instance_uuids': instance_uuids, **server},
        newest_first,
    )
    if query is None:
        return []
    if start is not None:
        query = query.where(_row.at > start)
    if end is not None:
        query = query.where(_row.at < end + 1)
    if after is not None:
        # Its own second, and those beyond.
        query = query.where(
            _row.at < after[0] + 1 if newest_first else _row.at >= after[0]
        )

    def wanted(at: float, number: int) -> bool:
        if (start is not None and at <= start) or (
            end is not None and at > end
        ):
            return False
        return after is None or (
            (at, number) < after if newest_first else (at, number) > after
        )

    found: list[_Found] = []
    for rows in _seconds(session, query, newest_first):
        found += _first(rows, limit - len(found), only, newest_first, wanted)
        if len(found) >= limit:
            break
    return _named(session, found)


def _rows(
    session: orm.Session,
    host: str | None,
    selection: Mapping[str, ty.Any] | None,
    newest_first: bool,
) -> ty.Any:
    # Without a join: MariaDB would begin with the hosts, and sort it all.
    query = sa.select(
        _row.id, _row.at, _row.samples, _row.executions, _row.host_id
    )
    # Both in one direction, as an index has them.
    query = (
        query.order_by(_row.at.desc(), _row.id.desc())
        if newest_first
        else query.order_by(_row.at, _row.id)
    )
    if host is not None:
        number = session.execute(
            sa.select(models.Host.id).where(models.Host.name == host)
        ).scalar()
        if number is None:
            return None
        query = query.where(_row.host_id == number)
    elif selection is not None:
        stay = _stay(session, selection)
        if not stay.hosts:
            return None
        query = query.where(
            _row.host_id.in_(stay.hosts), _row.at >= stay.start
        )
        if stay.end < math.inf:
            query = query.where(_row.at <= stay.end)
    # What they reported goes later, a part at a time.
    deleted = [number for number, _ in host_deletion.deleted(session)]
    if deleted:
        query = query.where(_row.host_id.not_in(deleted))
    return query


class _Stay(ty.NamedTuple):
    hosts: Sequence[int]
    start: float
    end: float


def _stay(session: orm.Session, selection: Mapping[str, ty.Any]) -> _Stay:
    """Where and when instances may have been since the oldest sample.

    To the hour: a search through all samples of their hosts would take a
    long time where there are none of theirs.

    :param selection: as for :func:`instances.among`.
    """
    bucket, instance = models.UsageBucket, orm.aliased(models.Instance)
    oldest = session.execute(sa.select(sa.func.min(_row.at))).scalar()
    if oldest is None:
        return _Stay((), 0.0, 0.0)
    listed = session.execute(
        sa.select(
            instance.host_id,
            sa.func.min(instance.arrived_at),
            sa.func.max(instance.left_at),
            sa.func.max(sa.case((instance.present.is_(True), 1), else_=0)),
        )
        .where(*instances.among(instance.uuid, **selection))
        .group_by(instance.host_id)
    ).all()
    # A host without a list may report it all the same.
    summed = session.execute(
        sa.select(
            bucket.host_id, sa.func.min(bucket.at), sa.func.max(bucket.at)
        )
        .where(
            *instances.among(bucket.instance_uuid, **selection),
            bucket.length_s == _HOUR_S,
            bucket.at >= oldest,
        )
        .group_by(bucket.host_id)
    ).all()
    starts = [arrived_at for _, arrived_at, _, _ in listed]
    starts += [at - _HOUR_S for _, at, _ in summed]
    ends = [
        math.inf if present or left_at is None else left_at
        for _, _, left_at, present in listed
    ]
    ends += [at for _, _, at in summed]
    return _Stay(
        sorted({row[0] for row in (*listed, *summed)}),
        # Agents report late, and their clocks differ.
        min(starts, default=0.0) - _HOUR_S,
        max(ends, default=0.0) + _HOUR_S,
    )


def _seconds(
    session: orm.Session, query: ty.Any, newest_first: bool
) -> Iterator[list[ty.Any]]:
    """The rows of one second after the other, each second whole.

    With two queries at a time, however many hosts a second has rows of.
    """
    beyond = query
    while True:
        ends = (
            session.execute(
                beyond.with_only_columns(_row.at).limit(_PAGE_ROWS)
            )
            .scalars()
            .all()
        )
        if not ends:
            return
        last = ends[-1]
        rows = session.execute(
            beyond.where(_row.at >= last if newest_first else _row.at <= last)
        ).all()
        seconds: dict[float, list[ty.Any]] = {}
        for row in rows:
            seconds.setdefault(row.at, []).append(row)
        yield from seconds.values()
        if len(ends) < _PAGE_ROWS:
            return
        beyond = query.where(
            _row.at < last if newest_first else _row.at > last
        )


def _first(
    rows: Sequence[ty.Any],
    limit: int,
    only: frozenset[str] | None,
    newest_first: bool,
    wanted: Callable[[float, int], bool],
) -> list[_Found]:
    """The first samples of one second, at most ``limit``.

    A second of many hosts has tens of thousands: what is not part of the
    page is not unpacked.

    :param only: the instances; None for all.
    :param wanted: whether the sample of that moment and number may be.
    """
    keys: list[tuple[float, int, int]] = []
    alone: dict[int, packing.Sample] = {}
    for index, (row_id, _, text, executions, _) in enumerate(rows):
        first = row_id << _PLACE_BITS
        if only is None:
            keys += [
                (at, first | place, index)
                for place, at in enumerate(packing.times(text))
                if wanted(at, first | place)
            ]
            continue
        if len(only) > 1:
            keys += [
                (at, first | place, index)
                for place, (uuid, at) in enumerate(packing.heads(text))
                if uuid in only and wanted(at, first | place)
            ]
            continue
        (uuid,) = only
        for place, sample in packing.unpack_one(text, uuid, executions):
            if wanted(sample.at, first | place):
                alone[first | place] = sample
                keys.append((sample.at, first | place, index))
    keys.sort(reverse=newest_first)
    unpacked: dict[int, list[packing.Sample]] = {}
    found = []
    for _, number, index in keys[:limit]:
        if number not in alone:
            if index not in unpacked:
                unpacked[index] = packing.unpack(
                    rows[index].samples, rows[index].executions
                )
            place = number & ((1 << _PLACE_BITS) - 1)
            alone[number] = unpacked[index][place]
        found.append(_Found(alone[number], number, rows[index].host_id))
    return found


def _named(session: orm.Session, found: Sequence[_Found]) -> list[Found]:
    names: dict[int, str] = dict(
        map(
            tuple,
            session.execute(
                sa.select(models.Host.id, models.Host.name).where(
                    models.Host.id.in_({one.host_id for one in found})
                )
            ),
        )
    )
    return [Found(one.sample, one.number, names[one.host_id]) for one in found]


def position(
    session: orm.Session,
    number: int,
    instance_uuids: Collection[str] = (),
    **server: str | None,
) -> tuple[float, int] | None:
    """Where in the order a sample is.

    :param instance_uuids: only if it is of one of these; none for all.
    :param server: as for :func:`instances.uuids`.
    """
    text = session.execute(
        sa.select(_row.samples).where(_row.id == number >> _PLACE_BITS)
    ).scalar()
    place = number & ((1 << _PLACE_BITS) - 1)
    samples = [] if text is None else packing.unpack(text)
    if place >= len(samples):
        return None
    only = instances.selected(session, instance_uuids, **server)
    if only is not None and samples[place].instance_uuid not in only:
        return None
    return samples[place].at, number


def add(
    session: orm.Session,
    batches: Mapping[tuple[int, int], Sequence[packing.Sample]],
) -> None:
    """Store samples, by the id of their host and their batch."""
    rows = [
        {
            'host_id': host_id,
            'batch': batch,
            'at': at,
            'count': len(those),
            'samples': packing.pack(those),
            'executions': packing.pack_executions(those),
        }
        for (host_id, batch), samples in batches.items()
        for at, those in packing.by_second(samples)
    ]
    if rows:
        session.connection().execute(_insert, rows)


def of_batches(
    session: orm.Session, host_id: int, after: int, last: int
) -> list[Stored]:
    """Samples of batches of a host.

    :param after: the batch before them.
    """
    return [
        Stored(at, packing.unpack(text, executions))
        for at, text, executions in session.connection().execute(
            _OF_BATCHES, {'host_id': host_id, 'after': after, 'last': last}
        )
    ]
