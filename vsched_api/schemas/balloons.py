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

"""What requests about balloons may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import balloons

LIST_QUERY = fields.closed({
    'limit': fields.LIMIT,
    'marker': fields.UUID,
    'host': fields.NAME,
    'instance_uuid': fields.UUID,
    'state': fields.any_of(balloons.BalloonState),
})

HISTORY_QUERY = fields.closed({
    'limit': fields.LIMIT,
    'marker': fields.UUID,
    'host': fields.NAME,
    'instance_uuid': fields.UUID,
    'outcome': fields.any_of(balloons.Outcome),
    'start': fields.TIME,
    'end': fields.TIME,
})

# What is right for one instance, its flavor and its agent say.
_VCPUS: fields.Schema = {'type': 'integer', 'minimum': 1,
                         'maximum': 2**31 - 1}

CREATE = fields.closed(
    {'instance_uuid': fields.UUID, 'target_vcpus': _VCPUS,
     'frozen': {'type': 'boolean'}},
    required=['instance_uuid', 'target_vcpus'])

UPDATE = fields.closed(
    # null: as many as the agent thinks right.
    {'target_vcpus': {**_VCPUS, 'type': ['integer', 'null']},
     'frozen': {'type': 'boolean'}}, minProperties=1)
