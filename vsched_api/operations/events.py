# SPDX-License-Identifier: Apache-2.0

"""Read the stored events."""

import dataclasses
import typing as ty

from vsched_api.db.queries import events as queries
from vsched_api.db.queries import instances as instance_queries
from vsched_api.db import session as db
from vsched_api.operations import instances
from vsched_api.operations import markers


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An event; times in seconds since the epoch.

    :param server_name: Nova's, as project and flavor; None without an
        instance, and where no agent reported it.
    """

    uuid: str
    at: float
    host: str
    code: str
    severity: str
    detail: str
    instance_uuid: str | None
    figures: dict[str, ty.Any]
    server_name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None


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
        after = markers.position(
            marker,
            lambda uuid: queries.position(session, uuid),
            'no event has it',
        )
        page = queries.page(session, limit, after, **filters)
        known = instance_queries.servers(
            session,
            {
                uuid
                for uuid in (found.event.instance_uuid for found in page)
                if uuid is not None
            },
        )
        return [
            _event(
                found,
                known.get(found.event.instance_uuid or '', instances.UNKNOWN),
            )
            for found in page
        ]

    return database.read(work)


def _event(found: queries.Found, server: instances.Server) -> Event:
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
        **server._asdict(),
    )
