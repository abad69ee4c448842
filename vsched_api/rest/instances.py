# SPDX-License-Identifier: Apache-2.0

"""``/v1/instances``: which instances run where."""

import typing as ty

import flask

from vsched_api.operations import instances
from vsched_api.policies import instances as policies
from vsched_api.rest import authorization
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import instances as schemas

BLUEPRINT = flask.Blueprint('instances', __name__)


@BLUEPRINT.get('/v1/instances')
def index() -> dict[str, ty.Any]:
    """A page of instances, in the order of their UUIDs."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    found = instances.page(
        services.current().database,
        size + 1,
        query.get('marker'),
        query.get('host'),
        query.get('present'),
    )
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {'instances': [_view(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/instances/<instance_uuid>')
def show(instance_uuid: str) -> dict[str, ty.Any]:
    """One instance."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    return {
        'instance': _view(
            instances.get(
                services.current().database,
                validation.instance_uuid(instance_uuid),
            )
        )
    }


def _view(one: instances.Instance) -> dict[str, ty.Any]:
    return {
        'instance_uuid': one.uuid,
        'name': one.name,
        'host': one.host,
        'vcpus': one.vcpus,
        'present': one.present,
        'links': pagination.self_link('instances', one.uuid),
    }
