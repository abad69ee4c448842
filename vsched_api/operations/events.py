# SPDX-License-Identifier: Apache-2.0

"""Read the stored events."""

import dataclasses
import typing as ty

from vsched_api.db.queries import events as queries
from vsched_api.db import session as db
from vsched_api.operations import errors


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An event; times in seconds since the epoch."""

    uuid: str
    at: float
    host: str
    code: str
    severity: str
    detail: str
    instance_uuid: str | None
    figures: dict[str, ty.Any]


def page(
    database: db.Database,
    limit: int,
    marker: str | None = None,
    **filters: ty.Any,
) -> list[Event]:
    """Return events, newest first.

    :param marker: UUID of the last event of the previous page.
    :param filters: as for :func:`vsched_api.db.queries.events.page`.
    :raises errors.Invalid: when the marker is not a stored event.
    """

    def work(session: ty.Any) -> list[Event]:
        after = None
        if marker is not None:
            after = queries.position(session, marker)
            if after is None:
                raise errors.Invalid('marker: no event has it')
        return [
            _event(found)
            for found in queries.page(session, limit, after, **filters)
        ]

    return database.read(work)


def _event(found: queries.Found) -> Event:
    row = found.event
    return Event(
        uuid=row.uuid,
        at=row.at,
        host=found.host,
        code=row.code,
        severity=row.severity,
        detail=row.detail,
        instance_uuid=row.instance_uuid,
        figures=row.figures,
    )
