# SPDX-License-Identifier: Apache-2.0

"""Who may see CPU time used."""

from vsched_api.policies import base

LIST = 'vsched:usage:list'

RULES = [
    base.documented(
        LIST,
        base.READER,
        'List samples of CPU time of instances and of hosts, and their sums.',
        ('GET', '/v1/usage'),
    )
]
