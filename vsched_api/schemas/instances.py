# SPDX-License-Identifier: Apache-2.0

"""What requests about instances may say."""

from vsched_api.schemas import fields

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.UUID,
        'host': fields.NAME,
        'present': {'type': 'boolean'},
    }
)
