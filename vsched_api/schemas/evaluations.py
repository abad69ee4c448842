# SPDX-License-Identifier: Apache-2.0

"""What requests for an evaluation may say."""

from vsched_api.schemas import fields
from vsched_api.schemas import reservations
from vsched_lib.contract import extra_specs

#: The most instances that one may ask about.
MOST = 1000

_TEXT: fields.Schema = {
    'type': 'string',
    'maxLength': extra_specs.MAX_VALUE_CHARS,
}

OVERRIDE = fields.closed(dict(reservations.WANTED), minProperties=1)

CREATE = fields.closed(
    {
        'extra_specs': {
            'type': 'object',
            'additionalProperties': _TEXT,
            'maxProperties': 200,
        },
        'vcpus': {'type': 'integer', 'minimum': 1, 'maximum': 1024},
        'override': OVERRIDE,
        'demand_mcpu': {'type': 'integer', 'minimum': 1, 'maximum': 10**9},
        'instances': {'type': 'integer', 'minimum': 1, 'maximum': MOST},
        'hosts': {
            'type': 'array',
            'items': fields.NAME,
            'minItems': 1,
            'maxItems': 1000,
            'uniqueItems': True,
        },
        'limit': fields.LIMIT,
    }
)
