# SPDX-License-Identifier: Apache-2.0

"""What requests about events may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import messages

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.UUID,
        'host': fields.NAME,
        'instance_uuid': fields.UUID,
        'severity': {
            'type': 'string',
            'enum': list(map(str, messages.Severity)),
        },
        'code': fields.WORD,
        'start': fields.TIME,
        'end': fields.TIME,
    }
)
