# SPDX-License-Identifier: Apache-2.0

"""Who may see hosts, and delete them."""

from vsched_api.policies import base

LIST = 'vsched:hosts:list'
SHOW = 'vsched:hosts:show'
AUDIT = 'vsched:hosts:audit'
DELETE = 'vsched:hosts:delete'

RULES = [
    base.documented(LIST, base.READER, 'List hosts.', ('GET', '/v1/hosts')),
    base.documented(
        SHOW, base.READER, 'Show a host.', ('GET', '/v1/hosts/{name}')
    ),
    base.documented(
        AUDIT,
        base.READER,
        'Compare what placement, database and kernel say of a host.',
        ('GET', '/v1/hosts/{name}/audit'),
    ),
    base.documented(
        DELETE, base.ADMIN, 'Delete a host.', ('DELETE', '/v1/hosts/{name}')
    ),
]
