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

"""``/v1/snapshot``: what a scheduler has to know of all hosts."""

import flask

from vsched_api.policies import snapshot as policies
from vsched_api.rest import authorization
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import snapshot as schemas

BLUEPRINT = flask.Blueprint('snapshot', __name__)


@BLUEPRINT.get('/v1/snapshot')
def show() -> flask.Response:
    """All hosts, or those that changed since a version."""
    authorization.enforce(policies.SHOW)
    query = validation.query(schemas.SHOW_QUERY)
    own = services.current()
    known = flask.request.if_none_match
    # A proxy that compresses makes the tag a weak one.
    tags = [*known.as_set(), *(known.as_set(include_weak=True))]
    answer = own.snapshots.get(own.now(), query.get('since'),
                               tags[0] if tags else None)
    if answer is None:
        found = flask.Response(status=304)
        found.set_etag(tags[0])
        return found
    found = flask.Response(answer.body, mimetype='application/json')
    if answer.zipped is not None and (
            flask.request.accept_encodings['gzip'] > 0):
        found.set_data(answer.zipped)
        found.content_encoding = 'gzip'
    found.vary.add('Accept-Encoding')
    found.set_etag(answer.tag)
    return found
