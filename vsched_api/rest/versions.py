# SPDX-License-Identifier: Apache-2.0

"""Which versions there are."""

import typing as ty

import flask

from vsched_api.policies import versions as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import microversion
from vsched_api.rest import pagination
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import versions as schemas

BLUEPRINT = flask.Blueprint('versions', __name__)


@BLUEPRINT.get('/')
@documentation.operation(policies.LIST, schemas.LIST)
def index() -> dict[str, ty.Any]:
    """List the versions of the API."""
    authorization.enforce(policies.LIST)
    validation.query(fields.NOTHING)
    return {'versions': [_version()]}


@BLUEPRINT.get('/v1')
@documentation.operation(policies.LIST, schemas.SHOW)
def show() -> dict[str, ty.Any]:
    """Show this version of the API."""
    authorization.enforce(policies.LIST)
    validation.query(fields.NOTHING)
    return {'version': _version()}


def _version() -> dict[str, ty.Any]:
    return {
        'id': 'v1.0',
        'status': 'CURRENT',
        'min_version': microversion.MIN_VERSION,
        'max_version': microversion.MAX_VERSION,
        'links': [{'rel': 'self', 'href': pagination.href('/v1')}],
    }
