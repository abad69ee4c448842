# SPDX-License-Identifier: Apache-2.0

"""``/v1/reservations``: what instances are promised, and changing it."""

from collections.abc import Iterable
from collections.abc import Mapping
from decimal import Decimal
import typing as ty

import flask

from vsched_api.operations import reservations
from vsched_api.policies import reservations as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import overrides
from vsched_api.rest import pagination
from vsched_api.rest import servers
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import reservations as schemas
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs

Code = errors.Code

BLUEPRINT = flask.Blueprint('reservations', __name__)

_ABSENT = (Code.INSTANCE_NOT_FOUND, Code.RESERVATION_NOT_FOUND)


@BLUEPRINT.get('/v1/reservations')
@documentation.operation(policies.LIST, schemas.LIST, query=schemas.LIST_QUERY)
def index() -> dict[str, ty.Any]:
    """List reservations, by their instances' UUIDs or by another key."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    servers.check_query(query)
    size = pagination.limit(query)
    found = reservations.page(
        services.current().database,
        size + 1,
        query.get('marker'),
        host=query.get('host'),
        instance_uuids=query.get('instance_uuid', ()),
        states=query.get('state', ()),
        sources=query.get('source', ()),
        backend=query.get('backend'),
        project_id=authorization.limit(policies.LIST, query.get('project_id')),
        server_name=query.get('server_name'),
        flavor_name=query.get('flavor_name'),
        sort_key=query.get('sort_key', reservations.SORT_KEYS[0]),
        descending=query.get('sort_dir') == 'desc',
    )
    page, links = pagination.split(found, size, lambda one: one.instance_uuid)
    return {'reservations': [_view(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/reservations/<instance_uuid>')
@documentation.operation(
    policies.SHOW,
    schemas.SHOW,
    headers=(documentation.ETAG,),
    errors={404: _ABSENT},
)
def show(instance_uuid: str) -> ty.Any:
    """Show the reservation of an instance."""
    authorization.enforce(policies.SHOW)
    return _NOUN.show(policies.SHOW, instance_uuid, reservations.get)


@BLUEPRINT.post('/v1/reservations')
@documentation.operation(
    policies.CREATE,
    schemas.SHOW,
    body=schemas.CREATE,
    status=202,
    headers=(documentation.ETAG, documentation.LOCATION),
    errors={
        400: (Code.RESERVATION_INVALID,),
        404: (Code.INSTANCE_NOT_FOUND,),
        409: (
            Code.RESERVATION_EXISTS,
            Code.INSTANCE_ABSENT,
            Code.BACKEND_UNAVAILABLE,
        ),
    },
)
def create() -> ty.Any:
    """Give a reservation to an instance that has none.

    It is accepted once it is stored, and pending until the agent has
    answered.
    """
    authorization.enforce(policies.CREATE)
    change, fields = overrides.creation(schemas.CREATE, conditional=False)
    own = services.current()
    return _NOUN.created(
        reservations.create(own.database, own.announcer, change, fields)
    )


@BLUEPRINT.patch('/v1/reservations/<instance_uuid>')
@documentation.operation(
    policies.UPDATE,
    schemas.SHOW,
    body=schemas.UPDATE,
    status=202,
    headers=(documentation.ETAG,),
    conditional='If-Match',
    errors={
        400: (Code.RESERVATION_INVALID,),
        404: _ABSENT,
        409: (
            Code.RESERVATION_CHANGING,
            Code.INSTANCE_ABSENT,
            Code.BACKEND_UNAVAILABLE,
            Code.GENERATION_CONFLICT,
        ),
        412: (Code.GENERATION_CONFLICT,),
    },
)
def update(instance_uuid: str) -> ty.Any:
    """Change the reservation of an instance, while it runs.

    What the body does not name stays as it is desired now; of a flavor's
    reservation this makes an override.
    """
    authorization.enforce(policies.UPDATE)
    change, fields = overrides.change(instance_uuid, schemas.UPDATE)
    own = services.current()
    return _NOUN.changed(
        reservations.change(own.database, own.announcer, change, fields)
    )


@BLUEPRINT.delete('/v1/reservations/<instance_uuid>')
@documentation.operation(
    policies.DELETE,
    schemas.SHOW,
    query=schemas.DELETE_QUERY,
    status=202,
    others=(204,),
    headers=(documentation.ETAG,),
    conditional='If-Match',
    errors={
        404: (Code.INSTANCE_NOT_FOUND, Code.OVERRIDE_NOT_FOUND),
        409: (Code.GENERATION_CONFLICT,),
        412: (Code.GENERATION_CONFLICT,),
    },
)
def delete(instance_uuid: str) -> ty.Any:
    """Remove an override, so that the flavor's reservation holds again.

    204 when nothing is left of the reservation: no agent had answered yet.
    """
    authorization.enforce(policies.DELETE)
    removal = overrides.removal(instance_uuid, schemas.DELETE_QUERY)
    own = services.current()
    return _NOUN.changed(
        reservations.withdraw(own.database, own.announcer, removal)
    )


_VIEW = views.View(schemas.RESERVATION)


def _reported(
    fields: Mapping[str, ty.Any] | None, names: Iterable[str]
) -> dict[str, ty.Any] | None:
    if fields is None:
        return None
    # As reported by an agent, which may be newer.
    return servers.shown(
        {name: fields.get(name) for name in names}, ['detail']
    )


def _value(key: str, text: str | None) -> ty.Any:
    if text is None:
        return None
    value = extra_specs.TABLE[key].parse(text)
    return float(value) if isinstance(value, Decimal) else value


def _view(one: reservations.Reservation) -> dict[str, ty.Any]:
    enforced = None
    if one.enforced_backend is not None:
        enforced = {
            'backend': one.enforced_backend,
            'runtime_us': one.enforced_runtime_us,
            'period_us': one.enforced_period_us,
            'bandwidth_mcpu': one.enforced_bandwidth_mcpu,
        }
    view = _VIEW(
        one,
        **{
            key: _value(key, one.specs.get(key))
            for key in extra_specs.OVERRIDABLE
        },
        override=overrides.author_view(one, policies.SHOW_AUTHOR),
        enforced=enforced,
        io=_reported(one.io, schemas.IO),
        communication=_reported(one.communication, schemas.COMMUNICATION),
        figures=dict(one.figures),
        links=pagination.self_link('reservations', one.instance_uuid),
    )
    return servers.shown(view, ['instance_name', 'host', 'detail'], figures={})


_NOUN = overrides.Noun('reservation', 'reservations', _view)
