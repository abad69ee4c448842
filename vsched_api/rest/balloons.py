# SPDX-License-Identifier: Apache-2.0

"""``/v1/balloons``: how many vCPUs instances are left with, and why."""

import typing as ty

import flask

from vsched_api.operations import balloons
from vsched_api.policies import balloons as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import documentation
from vsched_api.rest import overrides
from vsched_api.rest import pagination
from vsched_api.rest import servers
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import balloons as schemas
from vsched_lib.contract import errors

Code = errors.Code

BLUEPRINT = flask.Blueprint('balloons', __name__)

_ABSENT = (Code.INSTANCE_NOT_FOUND, Code.BALLOON_NOT_FOUND)
#: Why an order is known not to work.
_REFUSALS = (
    Code.BALLOON_NOT_FOUND,
    Code.BALLOON_OUT_OF_BOUNDS,
    Code.BALLOON_DOES_NOT_FIT,
    Code.BALLOON_GUEST_AGENT_UNAVAILABLE,
    Code.BALLOON_EXCLUDED,
    Code.BALLOON_DRY_RUN,
    Code.INSTANCE_ABSENT,
)


@BLUEPRINT.get('/v1/balloons')
@documentation.operation(policies.LIST, schemas.LIST, query=schemas.LIST_QUERY)
def index() -> dict[str, ty.Any]:
    """List instances that may be ballooned, and those with an order.

    In the order of their UUIDs.
    """
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    servers.check_query(query)
    size = pagination.limit(query)
    found = balloons.page(
        services.current().database,
        size + 1,
        query.get('marker'),
        host=query.get('host'),
        instance_uuids=query.get('instance_uuid', ()),
        states=query.get('state', ()),
        project_id=authorization.limit(policies.LIST, query.get('project_id')),
        server_name=query.get('server_name'),
        flavor_name=query.get('flavor_name'),
    )
    page, links = pagination.split(found, size, lambda one: one.instance_uuid)
    return {'balloons': [_view(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/balloons/history')
@documentation.operation(
    policies.HISTORY, schemas.HISTORY, query=schemas.HISTORY_QUERY
)
def history() -> dict[str, ty.Any]:
    """List balloons that are or were, newest first.

    What ended is kept for ``[collector] event_retention_days``.
    """
    authorization.enforce(policies.HISTORY)
    query = validation.query(schemas.HISTORY_QUERY)
    size = pagination.limit(query)
    found = balloons.history(
        services.current().database,
        size + 1,
        query.get('marker'),
        host=query.get('host'),
        instance_uuids=query.get('instance_uuid', ()),
        project_id=query.get('project_id'),
        server_name=query.get('server_name'),
        flavor_name=query.get('flavor_name'),
        outcomes=query.get('outcome', ()),
        start=query.get('start'),
        end=query.get('end'),
    )
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {'history': [_change(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/balloons/<instance_uuid>')
@documentation.operation(
    policies.SHOW,
    schemas.SHOW,
    headers=(documentation.ETAG,),
    errors={404: _ABSENT},
)
def show(instance_uuid: str) -> ty.Any:
    """Show how many vCPUs an instance uses, and why."""
    authorization.enforce(policies.SHOW)
    return _NOUN.show(policies.SHOW, instance_uuid, balloons.get)


@BLUEPRINT.post('/v1/balloons')
@documentation.operation(
    policies.CREATE,
    schemas.SHOW,
    body=schemas.CREATE,
    status=202,
    headers=(documentation.ETAG, documentation.LOCATION),
    conditional='If-Match',
    errors={
        404: (Code.INSTANCE_NOT_FOUND,),
        409: (*_REFUSALS, Code.GENERATION_CONFLICT),
        412: (Code.GENERATION_CONFLICT,),
    },
)
def create() -> ty.Any:
    """Order how many vCPUs a running instance uses.

    What was ordered before is replaced.
    """
    authorization.enforce(policies.CREATE)
    change, fields = overrides.creation(schemas.CREATE)
    own = services.current()
    return _NOUN.created(
        balloons.order(own.database, own.announcer, change, fields)
    )


@BLUEPRINT.patch('/v1/balloons/<instance_uuid>')
@documentation.operation(
    policies.UPDATE,
    schemas.SHOW,
    body=schemas.UPDATE,
    status=202,
    headers=(documentation.ETAG,),
    conditional='If-Match',
    errors={
        404: _ABSENT,
        409: (*_REFUSALS, Code.GENERATION_CONFLICT),
        412: (Code.GENERATION_CONFLICT,),
    },
)
def update(instance_uuid: str) -> ty.Any:
    """Change what is ordered, or freeze what an instance uses.

    What the body does not name stays as it was ordered.
    """
    authorization.enforce(policies.UPDATE)
    change, fields = overrides.change(instance_uuid, schemas.UPDATE)
    own = services.current()
    return _NOUN.changed(
        balloons.order(own.database, own.announcer, change, fields)
    )


@BLUEPRINT.delete('/v1/balloons/<instance_uuid>')
@documentation.operation(
    policies.DELETE,
    schemas.SHOW,
    query=schemas.DELETE_QUERY,
    status=202,
    headers=(documentation.ETAG,),
    conditional='If-Match',
    errors={
        404: (Code.INSTANCE_NOT_FOUND, Code.BALLOON_ORDER_NOT_FOUND),
        409: (Code.GENERATION_CONFLICT,),
        412: (Code.GENERATION_CONFLICT,),
    },
)
def delete(instance_uuid: str) -> ty.Any:
    """Leave the vCPUs of an instance to its agent again."""
    authorization.enforce(policies.DELETE)
    removal = overrides.removal(instance_uuid, schemas.DELETE_QUERY)
    own = services.current()
    return _NOUN.changed(
        balloons.withdraw(own.database, own.announcer, removal)
    )


_VIEW = views.View(schemas.BALLOON)
_CHANGE = views.View(schemas.CHANGE)


def _view(one: balloons.Balloon) -> dict[str, ty.Any]:
    report = one.report
    view = _VIEW(
        one,
        **views.picked(schemas.REPORT, report),
        cpus=[] if report is None else list(report.cpus),
        since=clock.iso(report.since if report else None),
        not_before=clock.iso(report.not_before if report else None),
        order=None if one.order_state is None else _order(one),
        links=pagination.self_link('balloons', one.instance_uuid),
    )
    return servers.shown(view, ['instance_name', 'host', 'cause'], cpus=[])


def _order(one: balloons.Balloon) -> dict[str, ty.Any]:
    return servers.shown(
        {
            'state': one.order_state,
            'generation': one.generation,
            'target_vcpus': one.target_vcpus,
            'frozen': one.frozen,
            'code': one.code,
            'detail': one.detail,
            'set_by': overrides.author_view(one, policies.SHOW_AUTHOR),
        },
        ['detail'],
    )


_NOUN = overrides.Noun('balloon', 'balloons', _view)


def _change(one: balloons.Change) -> dict[str, ty.Any]:
    return _CHANGE(
        one,
        duration_s=None
        if one.ended_at is None
        else round(max(0.0, one.ended_at - one.started_at), 3),
    )
