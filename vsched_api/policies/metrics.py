# SPDX-License-Identifier: Apache-2.0

"""Who may read the metrics."""

from vsched_api.policies import base

SHOW = 'vsched:metrics:show'

RULES = [
    base.documented(
        SHOW,
        base.READER,
        'Read figures of all hosts in the form of Prometheus. It is not asked '
        'for requests with the token in [metrics] token_file.',
        ('GET', '/metrics'),
    )
]
