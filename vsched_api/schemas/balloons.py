# SPDX-License-Identifier: Apache-2.0

"""What requests about balloons may say, and what answers do."""

from vsched_api.schemas import authors
from vsched_api.schemas import fields
from vsched_api.schemas import servers
from vsched_api.schemas import shapes
from vsched_lib.contract import balloons

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.UUID, 'UUID of the instance'),
        'host': fields.HOST,
        'project_id': servers.PROJECT,
        'server_name': servers.NAME,
        'flavor_name': servers.FLAVOR,
        'instance_uuid': fields.INSTANCES,
        'state': fields.any_of(balloons.BalloonState, 'state'),
    }
)

HISTORY_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.UUID, 'UUID of the balloon'),
        'host': fields.HOST,
        'instance_uuid': fields.INSTANCES,
        'project_id': servers.PROJECT,
        'server_name': servers.NAME,
        'flavor_name': servers.FLAVOR,
        'outcome': fields.any_of(balloons.Outcome, 'outcome'),
        'start': fields.described(
            fields.TIME, 'Only those that began at this time or later.'
        ),
        'end': fields.described(
            fields.TIME, 'Only those that began before this time.'
        ),
    }
)

# What is right for one instance, its flavor and its agent say.
_VCPUS: fields.Schema = {
    'type': 'integer',
    'minimum': 1,
    'maximum': 2**31 - 1,
    'description': 'How many vCPUs the instance uses, from ``floor_vcpus`` '
    'to ``vcpus``. The agent takes no others and gives none back while this '
    'is ordered.',
}
_FROZEN: fields.Schema = {
    'type': 'boolean',
    'description': 'The agent neither takes nor gives back vCPUs by itself. '
    'They are given back all the same when the instance reboots, when its '
    'flavor does not allow it any more and when the agent stops.',
}

CREATE = fields.closed(
    {
        'instance_uuid': fields.described(fields.UUID, 'The instance.'),
        'target_vcpus': _VCPUS,
        'frozen': _FROZEN,
        'generation': fields.GENERATION,
    },
    required=['instance_uuid', 'target_vcpus'],
    title='BalloonCreate',
)

UPDATE = fields.closed(
    # null: as many as the agent thinks right.
    {
        'target_vcpus': {
            **_VCPUS,
            'type': ['integer', 'null'],
            'description': '%s ``null`` leaves the number to the agent.'
            % _VCPUS['description'],
        },
        'frozen': _FROZEN,
        'generation': fields.GENERATION,
    },
    title='BalloonUpdate',
    **fields.at_least_one(['target_vcpus', 'frozen']),
)

DELETE_QUERY = fields.closed({'generation': fields.GENERATION})

_ORDER = shapes.closed(
    {
        'state': shapes.word(
            balloons.OrderState,
            '``pending``, ``applied``, or ``refused``. A refused order is '
            'tried again when its obstacle is gone.',
        ),
        'generation': shapes.integer('Number of the change.'),
        'target_vcpus': shapes.optional(
            shapes.integer(
                'How many vCPUs are ordered; ``null`` leaves the number to '
                'the agent.'
            )
        ),
        'frozen': shapes.boolean(
            'Whether the agent may change the number by itself.'
        ),
        'code': shapes.optional(shapes.string('Why it is not applied.')),
        'detail': servers.hidden(
            shapes.string('The same in one sentence for people.')
        ),
        'set_by': shapes.optional(
            authors.AUTHOR,
            'Who ordered it; ``null`` for those whom the policy '
            '``vsched:balloons:show_author`` does not allow to see it.',
        ),
    },
    'BalloonOrder',
)

#: What the agent has reported of the instance; null until then.
REPORT = {
    'state': shapes.word(
        balloons.BalloonState,
        '``full``: all of its vCPUs are online. ``trial``: it has fewer, and '
        'their effect is measured. ``kept``: it has fewer, and gains by it. '
        '``manual``: an operator ordered the number. ``returning``: all are '
        'being brought back.',
    ),
    'auto': shapes.boolean('Whether its flavor has ``vsched:balloon=auto``.'),
    'dry_run': shapes.boolean('The agent only reports what it would do.'),
    'pinned': shapes.boolean('Whether its vCPUs are pinned.'),
    'guest_answers': shapes.boolean(
        'Whether its guest agent answers; ``null`` when it was not tried.'
    ),
    'vcpus': shapes.integer('How many vCPUs it is configured for.'),
    'online_vcpus': shapes.integer('How many of them are online.'),
    'min_vcpus': shapes.integer("The flavor's ``vsched:min_vcpus``."),
    'floor_vcpus': shapes.integer(
        'The fewest vCPUs that can use all of its reservation.'
    ),
    'cause': servers.hidden(shapes.string('Why it has fewer vCPUs online.')),
    'failures': shapes.integer(
        'Balloons in a row that did not pay, or failed.'
    ),
}

BALLOON = shapes.closed(
    {
        'instance_uuid': shapes.uuid('UUID of the instance.'),
        'instance_name': servers.hidden(shapes.string('Its name in libvirt.')),
        **servers.FIELDS,
        'host': servers.hidden(shapes.string('Its host.')),
        'present': shapes.boolean('Whether a host lists the instance now.'),
        **{
            name: schema if name == 'cause' else shapes.optional(schema)
            for name, schema in REPORT.items()
        },
        'cpus': shapes.items(
            {'type': 'integer'},
            'Host CPUs that its online vCPUs are bound to; empty for those '
            'who do not see ``host``.',
        ),
        'since': shapes.optional(shapes.time('When the state was entered.')),
        'not_before': shapes.optional(
            shapes.time(
                'The agent takes no vCPU before that by itself: the cool-down '
                'after the last change, or the back-off after a balloon that '
                'did not pay.'
            )
        ),
        'order': shapes.optional(
            _ORDER, 'The order of an operator, ``null`` without one.'
        ),
        'links': shapes.LINKS,
    },
    'Balloon',
)

LIST = shapes.page('balloons', BALLOON)
SHOW = shapes.one('balloon', BALLOON)

CHANGE = shapes.closed(
    {
        'uuid': shapes.uuid('UUID of the balloon.'),
        'host': shapes.string('The host.'),
        'instance_uuid': shapes.uuid('UUID of the instance.'),
        **servers.FIELDS,
        'started_at': shapes.time('When vCPUs were taken.'),
        'ended_at': shapes.optional(
            shapes.time('When that changed; ``null`` while it lasts.')
        ),
        'duration_s': shapes.optional(
            shapes.number('How long it lasted; ``null`` while it lasts.')
        ),
        'vcpus': shapes.integer(
            'How many vCPUs the instance is configured for.'
        ),
        'before_vcpus': shapes.integer('How many it used before.'),
        'online_vcpus': shapes.integer(
            'How many it kept online, or would have.'
        ),
        'manual': shapes.boolean('Whether an operator ordered it.'),
        'cause': shapes.string('Why vCPUs were taken.'),
        'took_ms': shapes.optional(
            shapes.integer('From the command until the guest was verified.')
        ),
        'outcome': shapes.optional(
            shapes.word(
                balloons.Outcome,
                '``null``: nothing is known yet. ``kept``: it pays, and '
                'lasts. ``calm``: it was not needed any more. ``reverted``: '
                'it did not pay. ``unknown``: given back, as the effect is '
                'unknown. ``failed``: it was not carried out. ``undone``: '
                'something else ended it, see ``detail``. ``changed``: '
                'another number of vCPUs followed. ``proposed``: in a dry '
                'run, what would have been done.',
            )
        ),
        'detail': shapes.optional(shapes.string('Why it ended.')),
    },
    'BalloonChange',
)

HISTORY = shapes.page('history', CHANGE)
