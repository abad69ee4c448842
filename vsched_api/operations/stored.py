# SPDX-License-Identifier: Apache-2.0

"""Read what is stored of hosts, each by itself.

Rows may be of another release, of a restored backup or changed by hand. One
that cannot be read is a problem of its host, not of a request about all.
"""

import json

from vsched_api.db import models
from vsched_api.db.queries import snapshot as queries
from vsched_lib.contract import messages
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire


def info(row: models.Host) -> messages.HostInfo | None:
    """What a host last said of itself; None before it has.

    :raises wire.MalformedMessage: when it cannot be read.
    """
    return None if row.info is None else messages.HostInfo.from_dict(row.info)


def read(row: queries.Row) -> snapshot.Host:
    """What schedulers are told of a host.

    :raises wire.MalformedMessage: when it cannot be read, or decides
        nothing.
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
    # Certificates and prices make sense together only.
    found.fit()
    return found
