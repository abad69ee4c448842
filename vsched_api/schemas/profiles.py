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

"""What requests about profiles may say."""

from vsched_api.schemas import fields
from vsched_lib.contract import profiles
from vsched_lib.model import reservation
from vsched_lib.presentation import error_plots


def _some(item: fields.Schema, most: int) -> fields.Schema:
    return {'type': 'array', 'items': item, 'minItems': 1, 'maxItems': most,
            'uniqueItems': True}


_SOURCE: fields.Schema = {
    'type': 'string', 'enum': list(map(str, profiles.ProfileSource))}
_VERSION: fields.Schema = {
    'type': 'integer', 'minimum': 1, 'maximum': 2**63 - 1}

#: What is measured; the agent's defaults hold for what is not named.
CREATE = fields.closed({
    'shares_pct': _some(
        {'type': 'number', 'minimum': 0.1, 'maximum': 100}, 64),
    'backends': _some(fields.BACKEND, len(reservation.Backend)),
    'periods_us': _some(
        {'type': 'integer', 'minimum': 1_000, 'maximum': 1_000_000}, 8),
    'seconds': {'type': 'integer', 'minimum': 1, 'maximum': 3600},
    'contend': {'type': 'integer', 'minimum': 0, 'maximum': 256},
    'in_guest': {'type': 'boolean'},
    'quick': {'type': 'boolean'},
})

CREATE_OVERHEAD = fields.closed({
    'quick': {'type': 'boolean'},
})

SHOW_QUERY = fields.closed({
    'source': _SOURCE,
    'version': _VERSION,
    'format': {'type': 'string', 'enum': ['json', 'csv']},
})

VERSIONS_QUERY = fields.closed({
    'limit': fields.LIMIT,
    'marker': fields.UUID,
    'source': _SOURCE,
})

PLOT_QUERY = fields.closed({
    'source': _SOURCE,
    'version': _VERSION,
    'format': {'type': 'string', 'enum': list(error_plots.FORMS)},
})
