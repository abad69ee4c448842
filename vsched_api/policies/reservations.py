# SPDX-License-Identifier: Apache-2.0

"""Who may see and change reservations."""

from vsched_api.policies import base

LIST = 'vsched:reservations:list'
SHOW = 'vsched:reservations:show'
CREATE = 'vsched:reservations:create'
UPDATE = 'vsched:reservations:update'
DELETE = 'vsched:reservations:delete'

_ONE = '/v1/reservations/{instance_uuid}'

SHOW_AUTHOR = 'vsched:reservations:show_author'

RULES = [
    base.documented(
        LIST,
        base.PROJECT_READER,
        'List reservations. Who passes this only with a project gets those '
        'of its own instances.',
        ('GET', '/v1/reservations'),
    ),
    base.documented(
        SHOW, base.PROJECT_READER, 'Show a reservation.', ('GET', _ONE)
    ),
    base.documented(
        CREATE,
        base.ADMIN,
        'Give a reservation to an instance that carries none.',
        ('POST', '/v1/reservations'),
    ),
    base.documented(
        UPDATE,
        base.ADMIN,
        'Change the reservation of a running instance.',
        ('PATCH', _ONE),
    ),
    base.documented(
        DELETE,
        base.ADMIN,
        'Remove an override, so that the flavor holds again.',
        ('DELETE', _ONE),
    ),
    base.part(
        SHOW_AUTHOR,
        base.ADMIN,
        'See who set an override; it is null for others.',
    ),
]
