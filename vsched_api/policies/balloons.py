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

"""Who may see balloons, and who may order them."""

from vsched_api.policies import base

LIST = 'vsched:balloons:list'
SHOW = 'vsched:balloons:show'
HISTORY = 'vsched:balloons:history'
CREATE = 'vsched:balloons:create'
UPDATE = 'vsched:balloons:update'
DELETE = 'vsched:balloons:delete'

_ONE = '/v1/balloons/{instance_uuid}'

RULES = [
    base.documented(LIST, base.READER,
                    'List how many vCPUs instances are left with.',
                    ('GET', '/v1/balloons')),
    base.documented(HISTORY, base.READER,
                    'List balloons that are, and that were.',
                    ('GET', '/v1/balloons/history')),
    base.documented(SHOW, base.READER,
                    'Show how many vCPUs an instance is left with.',
                    ('GET', _ONE)),
    base.documented(CREATE, base.ADMIN,
                    'Order how many vCPUs a running instance uses.',
                    ('POST', '/v1/balloons')),
    base.documented(UPDATE, base.ADMIN,
                    'Change that order, or freeze what an instance uses.',
                    ('PATCH', _ONE)),
    base.documented(DELETE, base.ADMIN,
                    'Leave the vCPUs of an instance to its agent again.',
                    ('DELETE', _ONE)),
]
