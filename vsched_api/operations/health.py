# SPDX-License-Identifier: Apache-2.0

"""The health check of the service."""

from vsched_api.db.queries import counters
from vsched_api.db import session as db


def check(database: db.Database) -> None:
    """Raise unless the database responds and has the tables.

    :raises vsched_api.db.errors.DatabaseUnavailable: otherwise, with the
        reason.
    """
    database.read(counters.override_generation)
