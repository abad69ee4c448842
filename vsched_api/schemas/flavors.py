# SPDX-License-Identifier: Apache-2.0

"""What requests for claims of flavors may say, and what answers do."""

from vsched_api.schemas import fields
from vsched_api.schemas import shapes
from vsched_lib.model import reservation

CLAIM = fields.closed(
    {
        'extra_specs': {
            'type': 'object',
            # As long as Nova stores them.
            'additionalProperties': {'type': 'string', 'maxLength': 255},
            'maxProperties': 200,
            'description': 'Those of the flavor, as text, those of other '
            'namespaces too.',
        },
        'vcpus': {
            'type': 'integer',
            'minimum': 1,
            'maximum': 1024,
            'description': 'Of the flavor.',
        },
    },
    required=['extra_specs', 'vcpus'],
    title='FlavorClaimCreate',
)

#: The fields of a ``reservation.Reservation``.
RESERVATION = {
    'runtime_us': shapes.optional(
        shapes.integer(
            'CPU time reserved for each vCPU in every period; ``null`` '
            'without a reservation, as the other three.'
        )
    ),
    'period_us': shapes.optional(shapes.integer('Length of the period.')),
    'mode': shapes.optional(
        shapes.word(
            reservation.Mode,
            '``capped``: the runtime is guarantee and cap. '
            '``work_conserving``: time that others leave idle may be used as '
            'well.',
        )
    ),
    'backend': shapes.optional(
        shapes.word(
            reservation.Backend,
            'The backend that has to enforce it; ``null`` for the best that '
            'a host has.',
        )
    ),
}

ANSWER = shapes.one(
    'claim',
    shapes.closed(
        {
            'agrees': shapes.boolean(
                'Whether the extra specs of the request claim just that.'
            ),
            'extra_specs': {
                'type': 'object',
                'additionalProperties': {'type': 'string'},
                'description': 'All that the flavor has to have: those of '
                'the request with the right claim.',
            },
            **RESERVATION,
            'claim_mcpu': shapes.integer(
                'What an instance claims of the capacity of its host: the '
                'sum of the two parts.'
            ),
            'guest_mcpu': shapes.integer('The part of its vCPUs.'),
            'overhead_mcpu': shapes.integer(
                "The part of the host's work on its I/O, on the most "
                'expensive host; 0 unless it comes on top of the reservation.'
            ),
            'notes': shapes.items(
                {'type': 'string'},
                'What placement cannot check, and what is not known of '
                'hosts; each in one sentence for people.',
            ),
        },
        'FlavorClaim',
    ),
)
