# SPDX-License-Identifier: Apache-2.0

"""Who may ask where instances would fit."""

from vsched_api.policies import base

CREATE = 'vsched:evaluations:create'

RULES = [
    base.documented(
        CREATE,
        base.READER,
        'Ask on which hosts a flavor would fit, and why not on '
        'others. Nothing is changed by it.',
        ('POST', '/v1/evaluations'),
    )
]
