# SPDX-License-Identifier: Apache-2.0

"""What requests about instances may say, and what answers do."""

from vsched_api.operations import instances
from vsched_api.schemas import fields
from vsched_api.schemas import servers
from vsched_api.schemas import shapes
from vsched_lib.contract import messages

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.UUID, 'UUID of the instance'),
        'host': fields.HOST,
        'instance_uuid': fields.INSTANCES,
        'project_id': servers.PROJECT,
        'server_name': servers.NAME,
        'flavor_name': servers.FLAVOR,
        'present': {
            'type': 'boolean',
            'description': '``true`` for those that a host lists now, '
            '``false`` for those that none lists any more.',
        },
        'state': fields.described(
            fields.any_of(messages.State, 'state'),
            'Only those with a reservation in this state; may be given more '
            'than once.',
        ),
        **fields.sorted_by(instances.SORT_KEYS),
    }
)

INSTANCE = shapes.closed(
    {
        'instance_uuid': shapes.uuid('UUID of the instance.'),
        'name': servers.hidden(shapes.string('Its name in libvirt.')),
        **servers.FIELDS,
        'host': servers.hidden(
            shapes.string(
                'The host that began to list it last. While an instance '
                'migrates two hosts list it.'
            )
        ),
        'vcpus': shapes.integer('Number of its vCPUs.'),
        'present': shapes.boolean('Whether a host lists it now.'),
        'links': shapes.LINKS,
    },
    'Instance',
)

LIST = shapes.page('instances', INSTANCE)
SHOW = shapes.one('instance', INSTANCE)
