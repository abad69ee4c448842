# SPDX-License-Identifier: Apache-2.0

"""Who may see CPU time used."""

from vsched_api.policies import base

LIST = 'vsched:usage:list'

RULES = [
    base.documented(
        LIST,
        base.PROJECT_READER,
        'List samples of CPU time of instances and of hosts, and their sums. '
        'Who passes this only with a project gets those of its own instances.',
        ('GET', '/v1/usage'),
        ('GET', '/v1/usage/totals'),
    )
]
