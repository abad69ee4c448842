# SPDX-License-Identifier: Apache-2.0

"""What requests about balloons may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import balloons

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.UUID,
        'host': fields.NAME,
        'instance_uuid': fields.UUID,
        'state': fields.any_of(balloons.BalloonState),
    }
)

HISTORY_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.UUID,
        'host': fields.NAME,
        'instance_uuid': fields.UUID,
        'outcome': fields.any_of(balloons.Outcome),
        'start': fields.TIME,
        'end': fields.TIME,
    }
)

# What is right for one instance, its flavor and its agent say.
_VCPUS: fields.Schema = {'type': 'integer', 'minimum': 1, 'maximum': 2**31 - 1}

CREATE = fields.closed(
    {
        'instance_uuid': fields.UUID,
        'target_vcpus': _VCPUS,
        'frozen': {'type': 'boolean'},
        'generation': fields.GENERATION,
    },
    required=['instance_uuid', 'target_vcpus'],
)

UPDATE = fields.closed(
    # null: as many as the agent thinks right.
    {
        'target_vcpus': {**_VCPUS, 'type': ['integer', 'null']},
        'frozen': {'type': 'boolean'},
        'generation': fields.GENERATION,
    },
    anyOf=[{'required': ['target_vcpus']}, {'required': ['frozen']}],
)

DELETE_QUERY = fields.closed({'generation': fields.GENERATION})
