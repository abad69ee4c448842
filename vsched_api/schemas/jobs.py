# SPDX-License-Identifier: Apache-2.0

"""What requests about jobs may say, and what answers do."""

from vsched_api.schemas import fields
from vsched_api.schemas import shapes
from vsched_lib.contract import messages

LIST_QUERY = fields.closed(
    {
        'limit': fields.LIMIT,
        'marker': fields.marker(fields.UUID, 'UUID of the job'),
        'host': fields.HOST,
        'state': fields.any_of(messages.JobState, 'state'),
        'kind': fields.any_of(messages.JobKind, 'kind'),
    }
)

UPDATE = fields.closed(
    {
        'wanted': {
            'type': 'string',
            'enum': list(map(str, messages.JobWanted)),
            'description': '``cancel``: the agent stops the job, or does not '
            'begin; it is ``cancelled`` once the agent has confirmed that. '
            '``run``: resume a job that was cancelled or failed, as a new '
            'attempt; one that is queued or runs is left as it is.',
        }
    },
    required=['wanted'],
    title='JobUpdate',
)

JOB = shapes.closed(
    {
        'uuid': shapes.uuid('UUID of the job.'),
        'host': shapes.string('The host that does it.'),
        'kind': shapes.word(
            messages.JobKind,
            '``profile-error``: measure the error profile of the host. '
            '``profile-overhead``: measure its overhead profile.',
        ),
        'wanted': shapes.word(messages.JobWanted, 'The desired state.'),
        'state': shapes.word(
            messages.JobState,
            '``queued``: not begun by the agent. ``running``. ``done``, '
            '``failed``, ``cancelled``: finished.',
        ),
        'attempt': shapes.integer('How often it was ordered to run, from 1.'),
        'parameters': shapes.anything('The parameters of the request.'),
        'progress_ppm': shapes.integer('Which part of the work is done.'),
        'detail': shapes.string(
            'The current step, the result, or why it failed.'
        ),
        'eta_s': shapes.optional(
            shapes.number(
                'Estimated seconds until it is done, at the speed of its '
                'progress so far; ``null`` unless it runs and has '
                'progressed.'
            )
        ),
        'created_at': shapes.time('When it was first ordered.'),
        'started_at': shapes.optional(
            shapes.time(
                'When the agent first reported that the attempt runs; '
                '``null`` before.'
            )
        ),
        'updated_at': shapes.time(
            'When it was last ordered or reported on, by the clock of the '
            'service.'
        ),
        'links': shapes.LINKS,
    },
    'Job',
)

LIST = shapes.page('jobs', JOB)
SHOW = shapes.one('job', JOB)
