# SPDX-License-Identifier: Apache-2.0

"""Which versions there are."""

import typing as ty

import flask

from vsched_api.policies import versions as policies
from vsched_api.rest import authorization
from vsched_api.rest import microversion
from vsched_api.rest import pagination
from vsched_api.rest import validation
from vsched_api.schemas import fields

BLUEPRINT = flask.Blueprint('versions', __name__)


@BLUEPRINT.get('/')
def index() -> dict[str, ty.Any]:
    """Every version."""
    authorization.enforce(policies.LIST)
    validation.query(fields.NOTHING)
    return {'versions': [_version()]}


@BLUEPRINT.get('/v1')
def show() -> dict[str, ty.Any]:
    """This one."""
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
