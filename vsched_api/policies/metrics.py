# SPDX-License-Identifier: Apache-2.0

"""Who may read the metrics."""

from vsched_api.policies import base

SHOW = 'vsched:metrics:show'

RULES = [
    base.documented(
        SHOW,
        base.READER,
        'Read figures of all hosts in the form of Prometheus. A Prometheus '
        'that has no token needs "@" here.',
        ('GET', '/metrics'),
    )
]
