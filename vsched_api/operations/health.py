# SPDX-License-Identifier: Apache-2.0

"""Whether the service can do its work."""

from vsched_api.db.queries import counters
from vsched_api.db import session as db


def check(database: db.Database) -> None:
    """Go on only if the database answers and has our tables.

    :raises vsched_api.db.errors.DatabaseUnavailable: when not, and why.
    """
    database.read(counters.override_generation)
