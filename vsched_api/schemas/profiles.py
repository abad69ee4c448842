# SPDX-License-Identifier: Apache-2.0

"""What requests about profiles may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import profiles
from vsched_lib.model import reservation


def _some(item: fields.Schema, most: int) -> fields.Schema:
    return {
        'type': 'array',
        'items': item,
        'minItems': 1,
        'maxItems': most,
        'uniqueItems': True,
    }


_SOURCE: fields.Schema = {
    'type': 'string',
    'enum': list(map(str, profiles.ProfileSource)),
}
_VERSION: fields.Schema = {
    'type': 'integer',
    'minimum': 1,
    'maximum': 2**63 - 1,
}

#: What is measured; the agent's defaults hold for what is not named.
CREATE = fields.closed(
    {
        'shares_pct': _some(
            {'type': 'number', 'minimum': 0.1, 'maximum': 100}, 64
        ),
        'backends': _some(fields.WANTED_BACKEND, len(reservation.Backend)),
        'periods_us': _some(
            {'type': 'integer', 'minimum': 1_000, 'maximum': 1_000_000}, 8
        ),
        'seconds': {'type': 'integer', 'minimum': 1, 'maximum': 3600},
        'contend': {'type': 'integer', 'minimum': 0, 'maximum': 256},
        'in_guest': {'type': 'boolean'},
        'quick': {'type': 'boolean'},
    }
)

CREATE_OVERHEAD = fields.closed({'quick': {'type': 'boolean'}})

SHOW_QUERY = fields.closed(
    {
        'source': _SOURCE,
        'version': _VERSION,
        'format': {'type': 'string', 'enum': ['json', 'csv']},
    }
)

VERSIONS_QUERY = fields.closed(
    {'limit': fields.LIMIT, 'marker': fields.UUID, 'source': _SOURCE}
)
