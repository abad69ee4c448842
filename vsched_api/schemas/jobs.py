# SPDX-License-Identifier: Apache-2.0

"""What requests about jobs may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import messages

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.UUID,
        'host': fields.NAME,
        'state': fields.any_of(messages.JobState),
        'kind': fields.any_of(messages.JobKind),
    }
)

UPDATE = fields.closed(
    {'wanted': {'type': 'string', 'enum': list(map(str, messages.JobWanted))}},
    required=['wanted'],
)
