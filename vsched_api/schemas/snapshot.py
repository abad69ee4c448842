# SPDX-License-Identifier: Apache-2.0

"""What requests about the snapshot may say."""

from vsched_api.schemas import fields

SHOW_QUERY = fields.closed(
    {'since': {'type': 'integer', 'minimum': 0, 'maximum': 2**63 - 1}}
)
