# SPDX-License-Identifier: Apache-2.0

"""Who may see instances."""

from vsched_api.policies import base

LIST = 'vsched:instances:list'
SHOW = 'vsched:instances:show'
SHOW_HOST = 'vsched:instances:show_host'

RULES = [
    base.documented(
        LIST,
        base.PROJECT_READER,
        'List the instances that agents report. Who passes this only with a '
        'project gets those of its own.',
        ('GET', '/v1/instances'),
    ),
    base.documented(
        SHOW,
        base.PROJECT_READER,
        'Show an instance.',
        ('GET', '/v1/instances/{instance_uuid}'),
    ),
    base.part(
        SHOW_HOST,
        base.READER,
        'See the hosts of instances, their names in libvirt, the host CPUs '
        'that they are bound to, and details that may concern other '
        'instances, in instances, reservations, balloons and usage. They are '
        'null or empty without it, and lists cannot be filtered or sorted by '
        'them.',
    ),
]
