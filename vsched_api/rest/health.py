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

"""Whether the service works."""

import flask

from vsched_api.operations import health
from vsched_api.policies import health as policies
from vsched_api.rest import authorization
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields

BLUEPRINT = flask.Blueprint('health', __name__)


@BLUEPRINT.get('/healthcheck')
def show() -> dict[str, str]:
    """200 when the database answers; otherwise 503 and why."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    health.check(services.current().database)
    return {'status': 'ok', 'database': 'ok'}
