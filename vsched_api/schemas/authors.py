# SPDX-License-Identifier: Apache-2.0

"""What answers say of who set an override."""

from vsched_api.schemas import shapes

AUTHOR = shapes.closed(
    {
        'user_id': shapes.optional(shapes.string('The user in keystone.')),
        'project_id': shapes.optional(
            shapes.string('The project of the token.')
        ),
        'request_id': shapes.optional(
            shapes.string('The request, as in the logs of the service.')
        ),
        'created_at': shapes.optional(
            shapes.time('When the first override was set.')
        ),
        'updated_at': shapes.optional(
            shapes.time('When the last one was set.')
        ),
    },
    'Author',
)
