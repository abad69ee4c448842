# SPDX-License-Identifier: Apache-2.0

"""What answers say of the state of the service."""

from vsched_api.schemas import shapes

SHOW = shapes.closed(
    {
        'status': {
            **shapes.string('Whether the service can do its work.'),
            'const': 'ok',
        },
        'database': {
            **shapes.string('Whether the database answers.'),
            'const': 'ok',
        },
    },
    'Readiness',
)
