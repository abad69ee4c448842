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

"""What requests for an evaluation may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import extra_specs

#: The most instances that one may ask about.
MOST = 1000

_TEXT: fields.Schema = {
    'type': 'string', 'maxLength': extra_specs.MAX_VALUE_CHARS}

CREATE = fields.closed({
    'extra_specs': {'type': 'object', 'additionalProperties': _TEXT,
                    'maxProperties': 200},
    'vcpus': {'type': 'integer', 'minimum': 1, 'maximum': 1024},
    'demand_mcpu': {'type': 'integer', 'minimum': 1, 'maximum': 10**9},
    'instances': {'type': 'integer', 'minimum': 1, 'maximum': MOST},
    'hosts': {'type': 'array', 'items': fields.NAME, 'minItems': 1,
              'maxItems': 1000, 'uniqueItems': True},
    'limit': fields.LIMIT,
})
