# SPDX-License-Identifier: Apache-2.0

"""What answers say when a request fails."""

from vsched_api.schemas import fields
from vsched_api.schemas import shapes
from vsched_lib.contract import errors

_REQUIRED = {
    'status': shapes.integer('The HTTP status.'),
    'title': shapes.string('Its name in the standard.'),
    'detail': shapes.string(
        'One sentence for people. It begins with the name of the field where '
        'there is one.'
    ),
    'code': shapes.word(
        errors.Code, 'The stable code: strings are added, and never changed.'
    ),
    'request_id': shapes.optional(
        shapes.string(
            'The request, as in the header ``X-Openstack-Request-Id`` and in '
            'the log of the service.'
        )
    ),
}

ERROR = fields.closed(
    {
        **_REQUIRED,
        'min_version': shapes.string(
            'With the status 406: the oldest microversion.'
        ),
        'max_version': shapes.string(
            'With the status 406: the newest microversion.'
        ),
    },
    required=list(_REQUIRED),
    title='Error',
)

ERRORS = shapes.closed(
    {'errors': shapes.items(ERROR, 'One for each problem found.')}, 'Errors'
)
