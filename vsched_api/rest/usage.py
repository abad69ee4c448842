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

"""``/v1/usage``: how much CPU time instances got."""

import typing as ty

import flask

from vsched_api.operations import usage
from vsched_api.policies import usage as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import usage as schemas

BLUEPRINT = flask.Blueprint('usage', __name__)


@BLUEPRINT.get('/v1/usage')
def index() -> dict[str, ty.Any]:
    """A page of samples; ``sort_dir=desc`` starts with the newest."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    query.pop('limit', None)
    newest_first = query.pop('sort_dir', 'asc') == 'desc'
    found = usage.page(
        services.current().database, size + 1, newest_first=newest_first,
        **query)
    page, links = pagination.split(found, size, lambda sample: sample.number)
    return {'usage': [_view(sample) for sample in page], 'links': links}


def _view(sample: usage.Sample) -> dict[str, ty.Any]:
    return {
        'instance_uuid': sample.instance_uuid,
        'host': sample.host,
        'at': clock.iso(sample.at),
        'interval_us': sample.interval_us,
        'guest_us': sample.guest_us,
        'wait_us': sample.wait_us,
        'promised_us': sample.promised_us,
        'guest_mcpu': sample.guest_mcpu,
        'promised_mcpu': sample.promised_mcpu,
        'error_ppm': sample.error_ppm,
    }
