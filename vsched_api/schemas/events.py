# SPDX-License-Identifier: Apache-2.0

"""What requests about events may say, and what answers do."""

from vsched_api.schemas import fields
from vsched_api.schemas import servers
from vsched_api.schemas import shapes
from vsched_lib.contract import messages

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.UUID, 'UUID of the event'),
        'host': fields.HOST,
        'instance_uuid': fields.INSTANCES,
        'project_id': servers.PROJECT,
        'server_name': servers.NAME,
        'flavor_name': servers.FLAVOR,
        'severity': {
            'type': 'string',
            'enum': list(map(str, messages.Severity)),
            'description': 'Only those of this severity.',
        },
        'code': fields.described(fields.WORD, 'Only those with this code.'),
        'start': fields.START,
        'end': fields.END,
    }
)

EVENT = shapes.closed(
    {
        'uuid': shapes.uuid('UUID of the event.'),
        'at': shapes.time('When it happened.'),
        'host': shapes.string('The host that it happened on.'),
        'instance_uuid': shapes.optional(
            shapes.string('The instance concerned, if it is about one.')
        ),
        **servers.FIELDS,
        'code': shapes.string('The stable code.'),
        'severity': shapes.word(messages.Severity, 'How urgent it is.'),
        'detail': shapes.string('One sentence for people.'),
        'figures': shapes.anything('The numbers behind it, by name.'),
    },
    'Event',
)

LIST = shapes.page('events', EVENT)
