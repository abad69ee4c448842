# SPDX-License-Identifier: Apache-2.0

"""``/v1/events``: what happened, newest first."""

import typing as ty

import flask

from vsched_api.operations import events
from vsched_api.policies import events as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import events as schemas

BLUEPRINT = flask.Blueprint('events', __name__)

_VIEW = views.View(schemas.EVENT)


@BLUEPRINT.get('/v1/events')
@documentation.operation(policies.LIST, schemas.LIST, query=schemas.LIST_QUERY)
def index() -> dict[str, ty.Any]:
    """List events, newest first.

    Refusals, repaired drift, degradations, agents that started, reports that
    were lost. They are kept for ``[collector] event_retention_days``.
    """
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    query.pop('limit', None)
    query['instance_uuids'] = query.pop('instance_uuid', ())
    found = events.page(services.current().database, size + 1, **query)
    page, links = pagination.split(found, size, lambda event: event.uuid)
    return {'events': [_VIEW(event) for event in page], 'links': links}
