# SPDX-License-Identifier: Apache-2.0

"""Who may see instances."""

from vsched_api.policies import base

LIST = 'vsched:instances:list'
SHOW = 'vsched:instances:show'

RULES = [
    base.documented(
        LIST,
        base.READER,
        'List the instances that agents report.',
        ('GET', '/v1/instances'),
    ),
    base.documented(
        SHOW,
        base.READER,
        'Show an instance.',
        ('GET', '/v1/instances/{instance_uuid}'),
    ),
]
