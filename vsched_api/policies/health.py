# SPDX-License-Identifier: Apache-2.0

"""Who may ask whether the service can do its work."""

from vsched_api.policies import base

SHOW = 'vsched:health:show'

RULES = [
    base.documented(
        SHOW,
        base.ANYONE,
        'See whether the service can do its work.',
        ('GET', '/readiness'),
    )
]
