# SPDX-License-Identifier: Apache-2.0

"""What answers say of versions of the API."""

from vsched_api.schemas import shapes

VERSION = shapes.closed(
    {
        'id': shapes.string('Name of the version.'),
        'status': shapes.string('``CURRENT``.'),
        'min_version': shapes.string('The oldest microversion.'),
        'max_version': shapes.string('The newest microversion.'),
        'links': shapes.LINKS,
    },
    'Version',
)

LIST = shapes.closed({'versions': shapes.items(VERSION, 'Every version.')})
SHOW = shapes.one('version', VERSION)
