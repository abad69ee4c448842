# SPDX-License-Identifier: Apache-2.0

"""Parse the stored data of hosts, each by itself.

Rows may come from another release, from a restored backup or from manual
changes. An unreadable row affects its host only, not requests about all hosts.
"""

import json

from vsched_api.db import models
from vsched_api.db.queries import snapshot as queries
from vsched_lib.contract import messages
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire


def info(row: models.Host) -> messages.HostInfo | None:
    """Return the info that a host last reported; None before the first.

    :raises wire.MalformedMessage: when it cannot be read.
    """
    return None if row.info is None else messages.HostInfo.from_dict(row.info)


def read(row: queries.Row) -> snapshot.Host:
    """Return the data of a host for the scheduler filters.

    :raises wire.MalformedMessage: when the row cannot be read, or its contents
        contradict each other.
    """
    try:
        found = snapshot.Host.from_dict(
            {
                'name': row.name,
                'version': row.version,
                'admitted_mcpu': row.admitted_mcpu,
                'facts': json.loads(row.facts),
                'certificates': json.loads(row.certificates)
                if row.certified
                else [],
                'prices_ns': json.loads(row.prices_ns or 'null'),
            }
        )
    except (ValueError, RecursionError) as problem:
        if isinstance(problem, wire.MalformedMessage):
            raise
        raise wire.MalformedMessage('Host: not JSON: %s' % problem) from None
    # Certificates and prices are only checked together.
    found.fit()
    return found
