# SPDX-License-Identifier: Apache-2.0

"""Who may see events."""

from vsched_api.policies import base

LIST = 'vsched:events:list'

RULES = [
    base.documented(LIST, base.READER, 'List events.', ('GET', '/v1/events'))
]
