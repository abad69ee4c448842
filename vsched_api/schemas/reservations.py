# SPDX-License-Identifier: Apache-2.0

"""What requests about reservations may say, and what answers do."""

from vsched_api.operations import reservations
from vsched_api.schemas import authors
from vsched_api.schemas import fields
from vsched_api.schemas import servers
from vsched_api.schemas import shapes
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.contract import spec_values

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.UUID, 'UUID of the instance'),
        'host': fields.HOST,
        'project_id': servers.PROJECT,
        'server_name': servers.NAME,
        'flavor_name': servers.FLAVOR,
        'instance_uuid': fields.INSTANCES,
        'state': fields.any_of(messages.State, 'state'),
        'source': fields.any_of(messages.Source, 'source'),
        'backend': fields.described(
            fields.BACKEND, 'Only those that this backend enforces now.'
        ),
        **fields.sorted_by(reservations.SORT_KEYS),
    }
)

#: What an override may set.
WANTED = {
    'runtime_us': fields.described(
        fields.MICROSECONDS,
        'CPU time of each vCPU in every period; at most ``period_us``.',
    ),
    'period_us': fields.described(
        fields.MICROSECONDS,
        'Length of the period; 20000 for a new reservation without it.',
    ),
    'mode': fields.MODE,
    'backend': fields.described(
        fields.extra_spec('backend'),
        'The mechanism that must enforce it. ``null``: the best that the '
        'host has.',
    ),
    **{key: fields.extra_spec(key) for key in extra_specs.OVERRIDABLE},
}

CREATE = fields.closed(
    {
        'instance_uuid': fields.described(fields.UUID, 'The instance.'),
        **WANTED,
    },
    required=['instance_uuid', 'runtime_us'],
    title='ReservationCreate',
)

UPDATE = fields.closed(
    {**WANTED, 'generation': fields.GENERATION},
    title='ReservationUpdate',
    **fields.at_least_one(WANTED),
)

DELETE_QUERY = fields.closed({'generation': fields.GENERATION})

_ENFORCED = shapes.closed(
    {
        'backend': shapes.string('The backend that holds it.'),
        'runtime_us': shapes.optional(
            shapes.integer('CPU time of each vCPU in every period.')
        ),
        'period_us': shapes.optional(shapes.integer('Length of the period.')),
        'bandwidth_mcpu': shapes.optional(
            shapes.integer('The sum over all vCPUs.')
        ),
    },
    'EnforcedReservation',
)

_DETAIL = servers.hidden(shapes.string('The same in one sentence for people.'))

#: Those are as an agent reports them, which may be an older one.
IO = {
    'charging': shapes.string(
        '``auto``, ``charge`` or ``overprovision``, from the flavor.'
    ),
    'threads': shapes.integer('How many threads hold a reservation.'),
    'runtime_us': shapes.integer(
        'CPU time of all of them together in every period.'
    ),
    'period_us': shapes.integer('Their period.'),
    'guest_runtime_us': shapes.integer(
        'What each vCPU keeps in its own period.'
    ),
    'charged_mcpu': shapes.integer(
        "What the host's work is expected to need of the instance's "
        'reservation.'
    ),
    'debt_us': shapes.integer(
        'CPU time that was used in excess and is paid back.'
    ),
    'code': shapes.string('Why the threads do not hold their reservations.'),
    'detail': _DETAIL,
}

COMMUNICATION = {
    'granularity': shapes.integer(
        'Into how many parts runtime and period are divided: 1, 2, 4 or 8.'
    ),
    'runtime_ns': shapes.integer('The runtime of one part, of each vCPU.'),
    'period_ns': shapes.integer(
        'The period of one part; the bandwidth is the same.'
    ),
    'code': shapes.string('Why they cannot be divided.'),
    'detail': _DETAIL,
}


def _reported(
    properties: dict[str, shapes.Schema], title: str
) -> shapes.Schema:
    return shapes.closed(
        {
            name: schema if schema is _DETAIL else shapes.optional(schema)
            for name, schema in properties.items()
        },
        title,
    )


def _set(key: str) -> shapes.Schema:
    spec = extra_specs.TABLE[key]
    kind = {
        spec_values.Type.INTEGER: 'integer',
        spec_values.Type.DECIMAL: 'number',
        spec_values.Type.BOOLEAN: 'boolean',
        spec_values.Type.CHOICE: 'string',
    }[spec.type]
    return shapes.optional(
        {
            'type': kind,
            'description': 'What the override sets of ``%s``; ``null`` '
            'leaves it to the flavor.' % spec.name,
        }
    )


RESERVATION = shapes.closed(
    {
        'instance_uuid': shapes.uuid('UUID of the instance.'),
        'instance_name': servers.hidden(shapes.string('Its name in libvirt.')),
        **servers.FIELDS,
        'host': servers.hidden(shapes.string('Its host.')),
        'present': shapes.boolean('Whether a host lists the instance now.'),
        'vcpus': shapes.integer('Number of its vCPUs.'),
        'source': shapes.word(
            messages.Source,
            '``metadata`` (the flavor), ``override`` or ``none``.',
        ),
        'state': shapes.word(
            messages.State,
            '``pending``: desired, and not answered by the agent. '
            '``applied``: the kernel holds it as written. ``degraded``: a '
            'weaker backend holds it. ``refused``: it is not held, see '
            '``code``. ``released``: nothing is desired, or the instance '
            'does not run.',
        ),
        'generation': shapes.integer(
            'Number of the override, 0 without one. The header ``ETag`` has '
            'it in quotes.'
        ),
        'runtime_us': shapes.optional(
            shapes.integer('Desired CPU time of each vCPU in every period.')
        ),
        'period_us': shapes.optional(shapes.integer('The desired period.')),
        'mode': shapes.optional(
            shapes.string('``capped`` or ``work_conserving``, as desired.')
        ),
        'backend': shapes.optional(
            shapes.string(
                'The desired backend; ``null`` is the best that the host has.'
            )
        ),
        'bandwidth_mcpu': shapes.optional(
            shapes.integer('What is desired, over all vCPUs.')
        ),
        **{key: _set(key) for key in extra_specs.OVERRIDABLE},
        'override': shapes.optional(
            authors.AUTHOR,
            'Who set the override, and when. ``null`` without one, and for '
            'those whom the policy ``vsched:reservations:show_author`` does '
            'not allow to see it.',
        ),
        'enforced': shapes.optional(
            _ENFORCED,
            'What the kernel was last seen to hold, ``null`` when nothing.',
        ),
        'io': shapes.optional(
            _reported(IO, 'ReservationIo'),
            "The reservations of the host's threads for its I/O; ``null`` "
            'when they are not managed.',
        ),
        'communication': shapes.optional(
            _reported(COMMUNICATION, 'ReservationCommunication'),
            'How finely runtime and period are divided while the instance '
            'waits on packets; ``null`` when they are never divided.',
        ),
        'since': shapes.optional(shapes.time('When the state was entered.')),
        'attested_at': shapes.optional(
            shapes.time('When the kernel was last compared with the plan.')
        ),
        'code': shapes.optional(
            shapes.string('Why it is not held as written.')
        ),
        'detail': _DETAIL,
        'figures': shapes.anything(
            'The numbers behind it, by name; empty for those who do not see '
            '``detail``.'
        ),
        'links': shapes.LINKS,
    },
    'Reservation',
)

LIST = shapes.page('reservations', RESERVATION)
SHOW = shapes.one('reservation', RESERVATION)
