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

"""What requests about CPU time may say."""

from vsched_api.operations import usage
from vsched_api.schemas import fields

LIST_QUERY = fields.closed({
    'limit': fields.LIMIT,
    'marker': {'type': 'integer', 'minimum': 1, 'maximum': 2**63 - 1},
    'sort_dir': {'type': 'string', 'enum': ['asc', 'desc']},
    'of': {'type': 'string', 'enum': list(map(str, usage.Subject))},
    'host': fields.NAME,
    'instance_uuid': fields.UUID,
    'start': fields.TIME,
    'end': fields.TIME,
    'resolution': {'type': 'string', 'enum': list(map(str,
                                                      usage.Resolution))},
    'format': {'type': 'string', 'enum': ['json', 'csv']},
})
