# SPDX-License-Identifier: Apache-2.0

"""``/v1/instances``: which instances run where."""

import typing as ty

import flask

from vsched_api.operations import instances
from vsched_api.policies import instances as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import pagination
from vsched_api.rest import servers
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import fields
from vsched_api.schemas import instances as schemas
from vsched_lib.contract import errors

Code = errors.Code

BLUEPRINT = flask.Blueprint('instances', __name__)

_VIEW = views.View(schemas.INSTANCE)


@BLUEPRINT.get('/v1/instances')
@documentation.operation(policies.LIST, schemas.LIST, query=schemas.LIST_QUERY)
def index() -> dict[str, ty.Any]:
    """List the instances that agents report.

    In the order of their UUIDs or of another key.
    """
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    servers.check_query(query)
    size = pagination.limit(query)
    found = instances.page(
        services.current().database,
        size + 1,
        query.get('marker'),
        query.get('host'),
        query.get('present'),
        authorization.limit(policies.LIST, query.get('project_id')),
        query.get('server_name'),
        query.get('flavor_name'),
        query.get('instance_uuid', ()),
        query.get('state', ()),
        query.get('sort_key', instances.SORT_KEYS[0]),
        query.get('sort_dir') == 'desc',
    )
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {'instances': [_view(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/instances/<instance_uuid>')
@documentation.operation(
    policies.SHOW, schemas.SHOW, errors={404: (Code.INSTANCE_NOT_FOUND,)}
)
def show(instance_uuid: str) -> dict[str, ty.Any]:
    """Show an instance."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    uuid = validation.instance_uuid(instance_uuid)
    authorization.enforce_instance(policies.SHOW, uuid)
    return {
        'instance': _view(instances.get(services.current().database, uuid))
    }


def _view(one: instances.Instance) -> dict[str, ty.Any]:
    return servers.shown(
        _VIEW(
            one,
            instance_uuid=one.uuid,
            links=pagination.self_link('instances', one.uuid),
        ),
        ['name', 'host'],
    )
