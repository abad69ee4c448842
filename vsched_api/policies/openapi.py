# SPDX-License-Identifier: Apache-2.0

"""Who may read the description of the API."""

from vsched_api.policies import base

SHOW = 'vsched:openapi:show'

RULES = [
    base.documented(
        SHOW,
        base.ANYONE,
        'Read the OpenAPI document of the API.',
        ('GET', '/v1/openapi.json'),
    )
]
