# SPDX-License-Identifier: Apache-2.0

"""Read the stored instances."""

import dataclasses
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import instances as queries
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """An instance on its current or last host.

    :param present: whether a host lists it now.
    """

    uuid: str
    name: str
    host: str
    vcpus: int
    present: bool


def page(
    database: db.Database,
    limit: int,
    marker: str | None,
    host: str | None = None,
    present: bool | None = None,
) -> list[Instance]:
    """Return instances in the order of their UUIDs, after ``marker``."""
    return database.read(
        lambda session: [
            _instance(row)
            for row in queries.page(session, limit, marker, host, present)
        ]
    )


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
    )
