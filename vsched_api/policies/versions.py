# SPDX-License-Identifier: Apache-2.0

"""Who may ask for versions."""

from vsched_api.policies import base

LIST = 'vsched:versions:list'

RULES = [
    base.documented(
        LIST,
        base.ANYONE,
        'See which versions of the API there are.',
        ('GET', '/'),
        ('GET', '/v1'),
    )
]
