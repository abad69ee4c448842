# SPDX-License-Identifier: Apache-2.0

"""Who may see jobs, and end or resume them."""

from vsched_api.policies import base

LIST = 'vsched:jobs:list'
SHOW = 'vsched:jobs:show'
UPDATE = 'vsched:jobs:update'

_ONE = '/v1/jobs/{job_uuid}'

RULES = [
    base.documented(LIST, base.READER, 'List jobs.', ('GET', '/v1/jobs')),
    base.documented(SHOW, base.READER, 'Show a job.', ('GET', _ONE)),
    base.documented(
        UPDATE, base.ADMIN, 'Cancel a job, or resume it.', ('PATCH', _ONE)
    ),
]
