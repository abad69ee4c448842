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

"""What requests about jobs may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import messages

LIST_QUERY = fields.closed({
    'limit': fields.LIMIT,
    'marker': fields.UUID,
    'host': fields.NAME,
    'state': fields.any_of(messages.JobState),
    'kind': fields.any_of(messages.JobKind),
})

UPDATE = fields.closed(
    {'wanted': {'type': 'string',
                'enum': list(map(str, messages.JobWanted))}},
    required=['wanted'])
