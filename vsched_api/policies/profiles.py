# SPDX-License-Identifier: Apache-2.0

"""Who may see what hosts measured of themselves, and have them do it."""

from vsched_api.policies import base

LIST = 'vsched:profiles:list'
SHOW = 'vsched:profiles:show'
CREATE = 'vsched:profiles:create'
LIST_OVERHEAD = 'vsched:profiles:list_overhead'
SHOW_OVERHEAD = 'vsched:profiles:show_overhead'
CREATE_OVERHEAD = 'vsched:profiles:create_overhead'

_ERROR = '/v1/hosts/{name}/profiles/error'
_OVERHEAD = '/v1/hosts/{name}/profiles/overhead'

RULES = [
    base.documented(
        SHOW,
        base.READER,
        'Show the error profiles of a host.',
        ('GET', _ERROR),
    ),
    base.documented(
        LIST,
        base.READER,
        'List every error profile that is kept of a host.',
        ('GET', _ERROR + '/versions'),
    ),
    base.documented(
        CREATE,
        base.ADMIN,
        'Have a host measure how wrong its CPU allocation is.',
        ('POST', _ERROR),
    ),
    base.documented(
        SHOW_OVERHEAD,
        base.READER,
        'Show the overhead profiles of a host.',
        ('GET', _OVERHEAD),
    ),
    base.documented(
        LIST_OVERHEAD,
        base.READER,
        'List every overhead profile that is kept of a host.',
        ('GET', _OVERHEAD + '/versions'),
    ),
    base.documented(
        CREATE_OVERHEAD,
        base.ADMIN,
        'Have a host measure what its work for I/O costs.',
        ('POST', _OVERHEAD),
    ),
]
