# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Who may see and change reservations."""

from vsched_api.policies import base

LIST = 'vsched:reservations:list'
SHOW = 'vsched:reservations:show'
CREATE = 'vsched:reservations:create'
UPDATE = 'vsched:reservations:update'
DELETE = 'vsched:reservations:delete'

_ONE = '/v1/reservations/{instance_uuid}'

RULES = [
    base.documented(LIST, base.READER, 'List reservations.',
                    ('GET', '/v1/reservations')),
    base.documented(SHOW, base.READER, 'Show a reservation.',
                    ('GET', _ONE)),
    base.documented(CREATE, base.ADMIN,
                    'Give a reservation to an instance that carries none.',
                    ('POST', '/v1/reservations')),
    base.documented(UPDATE, base.ADMIN,
                    'Change the reservation of a running instance.',
                    ('PATCH', _ONE)),
    base.documented(DELETE, base.ADMIN,
                    'Remove an override, so that the flavor holds again.',
                    ('DELETE', _ONE)),
]
