# SPDX-License-Identifier: Apache-2.0

"""``/v1/events``: what happened, newest first."""

import typing as ty

import flask

from vsched_api.operations import events
from vsched_api.policies import events as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import events as schemas

BLUEPRINT = flask.Blueprint('events', __name__)


@BLUEPRINT.get('/v1/events')
def index() -> dict[str, ty.Any]:
    """A page of events."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    query.pop('limit', None)
    found = events.page(services.current().database, size + 1, **query)
    page, links = pagination.split(found, size, lambda event: event.uuid)
    return {'events': [_view(event) for event in page], 'links': links}


def _view(event: events.Event) -> dict[str, ty.Any]:
    return {
        'uuid': event.uuid,
        'at': clock.iso(event.at),
        'host': event.host,
        'instance_uuid': event.instance_uuid,
        'code': event.code,
        'severity': event.severity,
        'detail': event.detail,
        'figures': event.figures,
    }
