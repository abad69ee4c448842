# SPDX-License-Identifier: Apache-2.0

"""Who may ask what flavors have to claim."""

from vsched_api.policies import base

CLAIM = 'vsched:flavors:claim'

RULES = [
    base.documented(
        CLAIM,
        base.READER,
        'Ask what a flavor has to claim in placement. Nothing is changed by '
        'it.',
        ('POST', '/v1/flavors/claims'),
    )
]
