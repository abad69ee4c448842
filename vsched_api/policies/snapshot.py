# SPDX-License-Identifier: Apache-2.0

"""Who may read the snapshot of hosts that schedulers use."""

from vsched_api.policies import base
from vsched_lib.contract import snapshot

SHOW = 'vsched:snapshot:show'

RULES = [
    base.documented(
        SHOW,
        base.READER,
        'Show what is measured and in use on all hosts.',
        ('GET', snapshot.PATH),
    )
]
