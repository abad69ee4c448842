# SPDX-License-Identifier: Apache-2.0

"""Who may see balloons, and who may order them."""

from vsched_api.policies import base

LIST = 'vsched:balloons:list'
SHOW = 'vsched:balloons:show'
HISTORY = 'vsched:balloons:history'
CREATE = 'vsched:balloons:create'
UPDATE = 'vsched:balloons:update'
DELETE = 'vsched:balloons:delete'

_ONE = '/v1/balloons/{instance_uuid}'

SHOW_AUTHOR = 'vsched:balloons:show_author'

RULES = [
    base.part(
        SHOW_AUTHOR,
        base.ADMIN,
        'See who ordered a balloon; it is null for others.',
    ),
    base.documented(
        LIST,
        base.PROJECT_READER,
        'List how many vCPUs instances are left with. Who passes this only '
        'with a project gets those of its own.',
        ('GET', '/v1/balloons'),
    ),
    base.documented(
        HISTORY,
        base.READER,
        'List balloons that are, and that were.',
        ('GET', '/v1/balloons/history'),
    ),
    base.documented(
        SHOW,
        base.PROJECT_READER,
        'Show how many vCPUs an instance is left with.',
        ('GET', _ONE),
    ),
    base.documented(
        CREATE,
        base.ADMIN,
        'Order how many vCPUs a running instance uses.',
        ('POST', '/v1/balloons'),
    ),
    base.documented(
        UPDATE,
        base.ADMIN,
        'Change that order, or freeze what an instance uses.',
        ('PATCH', _ONE),
    ),
    base.documented(
        DELETE,
        base.ADMIN,
        'Leave the vCPUs of an instance to its agent again.',
        ('DELETE', _ONE),
    ),
]
