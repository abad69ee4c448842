# SPDX-License-Identifier: Apache-2.0

"""``/v1/openapi.json``: this API, for programs that make clients."""

import functools
import hashlib
import json

import flask

from vsched_api.policies import openapi as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import openapi_document
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import openapi as schemas

BLUEPRINT = flask.Blueprint('openapi', __name__)

#: More addresses than one service has.
_MAX_ADDRESSES = 8


@BLUEPRINT.get('/v1/openapi.json')
@documentation.operation(
    policies.SHOW,
    schemas.SHOW,
    others=(304,),
    headers=(documentation.ETAG,),
    conditional='If-None-Match',
)
def show() -> flask.Response:
    """Describe every operation of this API.

    The document is the same until the service is upgraded.
    """
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    body, tag = _made(
        services.current().conf.api.public_endpoint
        or flask.request.root_path
        or '/'
    )
    if flask.request.if_none_match.contains_weak(tag):
        answer = flask.Response(status=304)
    else:
        answer = flask.Response(body, mimetype=documentation.JSON)
    answer.set_etag(tag)
    answer.cache_control.no_cache = True
    return answer


@functools.lru_cache(_MAX_ADDRESSES)
def _made(address: str) -> tuple[bytes, str]:
    """Return the document of a service at an address, and its ETag."""
    body = json.dumps(
        {**openapi_document.document(), 'servers': [{'url': address}]},
        separators=(',', ':'),
    ).encode()
    return body, hashlib.sha256(body).hexdigest()[:32]
