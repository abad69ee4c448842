# SPDX-License-Identifier: Apache-2.0

"""Read the stored instances."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import instances as queries
from vsched_api.db.queries import reservations
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import markers
from vsched_lib.contract import errors as contract_errors


Server = queries.Server
#: Of an instance that is not known, or not any more.
UNKNOWN = Server(None, None, None)


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """An instance on its current or last host.

    :param present: whether a host lists it now.
    :param server_name: Nova's, as project and flavor; None where no agent
        reported it.
    """

    uuid: str
    name: str
    host: str
    vcpus: int
    present: bool
    server_name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None


#: What instances may be sorted by.
SORT_KEYS = tuple(queries.SORT_KEYS)


def page(
    database: db.Database,
    limit: int,
    marker: str | None,
    host: str | None = None,
    present: bool | None = None,
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
    instance_uuids: Collection[str] = (),
    states: Collection[str] = (),
    sort_key: str = SORT_KEYS[0],
    descending: bool = False,
) -> list[Instance]:
    """Return instances in an order, those after the instance ``marker``.

    :param states: only those with a reservation in one of these; none for
        all, with a reservation or without.
    :param sort_key: one of :data:`SORT_KEYS`; those with the same value are
        in the order of their UUIDs.
    :raises errors.Invalid: when no instance has the marker, and they are not
        in the order of UUIDs.
    """

    def work(session: ty.Any) -> list[Instance]:
        after = markers.position(
            marker,
            lambda uuid: queries.position(session, uuid, sort_key, project_id),
            'no instance has it',
        )
        return [
            _instance(row)
            for row in queries.page(
                session,
                limit,
                after,
                host,
                present,
                project_id,
                server_name,
                flavor_name,
                instance_uuids,
                reservations.instances_in(states) if states else None,
                sort_key,
                descending,
            )
        ]

    return database.read(work)


def get(database: db.Database, uuid: str) -> Instance:
    """Return one instance.

    :raises errors.NotFound: when no agent reported it.
    """

    def work(session: ty.Any) -> Instance:
        row = queries.current(session, uuid)
        if row is None:
            raise unknown(uuid)
        return _instance(row)

    return database.read(work)


def project_id(database: db.Database, uuid: str) -> str | None:
    """Return the project that an instance belongs to.

    :returns: None when none is known, or hosts report different ones.
    """
    return database.read(lambda session: queries.project_id(session, uuid))


def servers(
    database: db.Database, uuids: Collection[str]
) -> Mapping[str, Server]:
    """Return Nova's names of instances, by the UUIDs of those known."""
    return database.read(lambda session: queries.servers(session, uuids))


def unknown(uuid: str) -> errors.NotFound:
    """Return the error for an instance that no agent reported."""
    return errors.NotFound(
        'no agent reported an instance %s' % uuid,
        contract_errors.Code.INSTANCE_NOT_FOUND,
    )


def _instance(row: models.Instance) -> Instance:
    return Instance(
        uuid=row.uuid,
        name=row.name,
        host=row.host.name,
        vcpus=row.vcpus,
        present=row.present,
        server_name=row.server_name,
        project_id=row.project_id,
        flavor_name=row.flavor_name,
    )
