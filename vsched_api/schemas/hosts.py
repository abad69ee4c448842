# SPDX-License-Identifier: Apache-2.0

"""What requests about hosts may say."""

from vsched_api.schemas import fields

LIST_QUERY = fields.closed({'limit': fields.LIMIT, 'marker': fields.NAME})

DELETE_QUERY = fields.closed({'force': {'type': 'boolean'}})
