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

"""Rows of samples of CPU time."""

from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import models

_row = models.UsageSample
_table = ty.cast(sa.Table, _row.__table__)
_insert = _table.insert()


class New(ty.NamedTuple):
    """A sample as it comes; what a row has besides host and batch."""

    instance_uuid: str
    at: float
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None


class Stored(ty.NamedTuple):
    """A sample as it is folded."""

    batch: int
    instance_uuid: str
    at: float
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None


class Found(ty.NamedTuple):
    """A sample and the host it is from."""

    sample: models.UsageSample
    host: str


def page(session: orm.Session, limit: int,
         after: tuple[float, int] | None = None, newest_first: bool = False,
         host: str | None = None, instance_uuid: str | None = None,
         start: float | None = None, end: float | None = None,
         ) -> Sequence[Found]:
    """Samples in the order of time.

    :param after: time and id of the last one of the page before.
    :param start: seconds since the epoch; a sample counts when its
        interval ends after it.
    :param end: seconds since the epoch, inclusive.
    """
    query = sa.select(_row, models.Host.name).join(
        models.Host, models.Host.id == _row.host_id).limit(limit)
    if newest_first:
        query = query.order_by(_row.at.desc(), _row.id.desc())
    else:
        query = query.order_by(_row.at, _row.id)
    if after is not None:
        at, number = after
        query = query.where(
            sa.or_(_row.at < at, sa.and_(_row.at == at, _row.id < number))
            if newest_first else
            sa.or_(_row.at > at, sa.and_(_row.at == at, _row.id > number)))
    if host is not None:
        query = query.where(models.Host.name == host)
    if instance_uuid is not None:
        query = query.where(_row.instance_uuid == instance_uuid)
    if start is not None:
        query = query.where(_row.at > start)
    if end is not None:
        query = query.where(_row.at <= end)
    return [Found(*row) for row in session.execute(query)]


def position(session: orm.Session, number: int) -> tuple[float, int] | None:
    """Where in the order a sample is."""
    found = session.execute(
        sa.select(_row.at, _row.id).where(_row.id == number)).first()
    return None if found is None else (found[0], found[1])


def add(session: orm.Session,
        batches: Mapping[tuple[int, int], Sequence[New]]) -> None:
    """Store samples, by the id of their host and their batch."""
    rows = [{'host_id': host_id, 'batch': batch, **sample._asdict()}
            for (host_id, batch), samples in batches.items()
            for sample in samples]
    if rows:
        session.connection().execute(_insert, rows)


def of_batches(session: orm.Session, host_id: int, after: int, last: int,
               limit: int) -> Sequence[Stored]:
    """Samples of whole batches of a host, in the order of batches.

    :param after: the batch before them.
    :param last: the last one that counts.
    :param limit: how many samples at most, unless one batch has more.
    """
    query = sa.select(*(_table.c[name] for name in Stored._fields)).where(
        _row.host_id == host_id).order_by(_row.batch)
    found = [Stored(*row) for row in session.execute(query.where(
        _row.batch > after, _row.batch <= last).limit(limit))]
    if len(found) < limit:
        return found
    cut = found[-1].batch
    if found[0].batch < cut:
        # The last one may not be whole.
        return [one for one in found if one.batch < cut]
    return [Stored(*row) for row in session.execute(
        query.where(_row.batch == cut))]


def delete_before(session: orm.Session, before: float, limit: int) -> int:
    """Delete the oldest samples, but none that is in no bucket yet.

    :returns: how many went; fewer than ``limit`` when none is left.
    """
    fold = models.UsageFold
    ids = session.execute(
        sa.select(_row.id).outerjoin(
            fold, fold.host_id == _row.host_id).where(
                _row.at < before,
                _row.batch <= sa.func.coalesce(fold.batch, 0)).order_by(
                    _row.at).limit(limit)).scalars().all()
    if ids:
        session.execute(sa.delete(_row).where(_row.id.in_(ids))
                        .execution_options(synchronize_session=False))
    return len(ids)
