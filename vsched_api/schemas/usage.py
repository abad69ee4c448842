# SPDX-License-Identifier: Apache-2.0

"""What requests about CPU time may say."""

from vsched_api.operations import usage
from vsched_api.schemas import fields

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': {'type': 'integer', 'minimum': 1, 'maximum': 2**63 - 1},
        'sort_dir': {'type': 'string', 'enum': ['asc', 'desc']},
        'of': {'type': 'string', 'enum': list(map(str, usage.Subject))},
        'host': fields.NAME,
        'instance_uuid': fields.UUID,
        'start': fields.TIME,
        'end': fields.TIME,
        'resolution': {
            'type': 'string',
            'enum': list(map(str, usage.Resolution)),
        },
        'format': {'type': 'string', 'enum': ['json', 'csv']},
    }
)
