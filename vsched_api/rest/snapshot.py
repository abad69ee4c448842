# SPDX-License-Identifier: Apache-2.0

"""``/v1/snapshot``: what a scheduler has to know of all hosts."""

import flask

from vsched_api.policies import snapshot as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import snapshot as schemas
from vsched_lib.contract import snapshot

BLUEPRINT = flask.Blueprint('snapshot', __name__)


@BLUEPRINT.get(snapshot.PATH)
@documentation.operation(
    policies.SHOW,
    schemas.SNAPSHOT,
    query=schemas.SHOW_QUERY,
    others=(304,),
    headers=(documentation.ETAG,),
    conditional='If-None-Match',
)
def show() -> flask.Response:
    """Read what a scheduler has to know of all hosts, or what changed.

    It is compressed for clients that accept gzip.
    """
    authorization.enforce(policies.SHOW)
    query = validation.query(schemas.SHOW_QUERY)
    own = services.current()
    known = flask.request.if_none_match
    # A proxy that compresses makes the tag a weak one.
    tags = [*known.as_set(), *(known.as_set(include_weak=True))]
    answer = own.snapshots.get(
        own.now(), query.get('since'), tags[0] if tags else None
    )
    if answer is None:
        found = flask.Response(status=304)
        found.set_etag(tags[0])
        return found
    found = flask.Response(answer.body, mimetype='application/json')
    if answer.zipped is not None and (
        flask.request.accept_encodings['gzip'] > 0
    ):
        found.set_data(answer.zipped)
        found.content_encoding = 'gzip'
    found.vary.add('Accept-Encoding')
    found.set_etag(answer.tag)
    return found
