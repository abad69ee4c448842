# SPDX-License-Identifier: Apache-2.0

"""Who may load the operators' page.

The page has no data of its own: what it shows, it requests as its user.
"""

from vsched_api.policies import base

SHOW = 'vsched:page:show'

RULES = [
    base.documented(
        SHOW,
        base.ANYONE,
        'Load the page for operators, and see which operations the policies '
        'allow for the token of the request.',
        ('GET', '/ui'),
        ('GET', '/ui/{view}'),
        ('GET', '/ui/{view}/{item}'),
        ('GET', '/ui/assets/{asset}'),
        ('GET', '/ui/session'),
    )
]
