# SPDX-License-Identifier: Apache-2.0

"""What requests about reservations may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.UUID,
        'host': fields.NAME,
        'instance_uuid': fields.UUID,
        'state': fields.any_of(messages.State),
        'source': fields.any_of(messages.Source),
        'backend': fields.BACKEND,
    }
)

#: What an override may set.
WANTED = {
    'runtime_us': fields.MICROSECONDS,
    'period_us': fields.MICROSECONDS,
    'mode': fields.MODE,
    # null: whichever is the best that the host has.
    'backend': fields.extra_spec('backend'),
    **{key: fields.extra_spec(key) for key in extra_specs.OVERRIDABLE},
}

CREATE = fields.closed(
    {'instance_uuid': fields.UUID, **WANTED},
    required=['instance_uuid', 'runtime_us'],
)

UPDATE = fields.closed(
    {**WANTED, 'generation': fields.GENERATION},
    anyOf=[{'required': [name]} for name in WANTED],
)

DELETE_QUERY = fields.closed({'generation': fields.GENERATION})
