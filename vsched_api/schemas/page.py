# SPDX-License-Identifier: Apache-2.0

"""The first request of the page for operators."""

from vsched_api.schemas import shapes

SESSION = shapes.closed(
    {
        'auth_strategy': shapes.string(
            '``keystone`` or ``noauth``, as in ``[api] auth_strategy``.'
        ),
        'authenticated': shapes.boolean(
            'Whether the token of the request is valid; always true with '
            '``noauth``.'
        ),
        'problem': shapes.optional(
            shapes.string(
                'Why the token could not be checked; null when it could.'
            )
        ),
        'user_id': shapes.optional(
            shapes.string('The user of the token; null without one.')
        ),
        'roles': shapes.items({'type': 'string'}, 'The roles of the token.'),
        'project_id': shapes.optional(
            shapes.string('The project of the token; null without one.')
        ),
        'allowed': shapes.items(
            {'type': 'string'},
            'The policies that allow their operation to this request, for '
            'all projects.',
        ),
        'allowed_in_project': shapes.items(
            {'type': 'string'},
            'The policies that allow their operation to this request only '
            'for instances of the project of the token.',
        ),
    },
    'Session',
)

SHOW_SESSION = shapes.one('session', SESSION)
