# SPDX-License-Identifier: Apache-2.0

"""``/v1/reservations``: what instances are promised, and changing it.

A change is accepted once it is stored: 202, and the reservation is pending
until its agent has answered.
"""

from decimal import Decimal
import typing as ty

import flask

from vsched_api.operations import reservations
from vsched_api.policies import reservations as policies
from vsched_api.rest import authorization
from vsched_api.rest import authors
from vsched_api.rest import clock
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import reservations as schemas
from vsched_lib.contract import extra_specs

BLUEPRINT = flask.Blueprint('reservations', __name__)


@BLUEPRINT.get('/v1/reservations')
def index() -> dict[str, ty.Any]:
    """A page of reservations, in the order of their instances' UUIDs."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    found = reservations.page(
        services.current().database,
        size + 1,
        query.get('marker'),
        host=query.get('host'),
        instance_uuid=query.get('instance_uuid'),
        states=query.get('state', ()),
        sources=query.get('source', ()),
        backend=query.get('backend'),
    )
    page, links = pagination.split(found, size, lambda one: one.instance_uuid)
    return {'reservations': [_view(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/reservations/<instance_uuid>')
def show(instance_uuid: str) -> ty.Any:
    """One instance's reservation."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    return _answer(
        reservations.get(
            services.current().database,
            validation.instance_uuid(instance_uuid),
        ),
        200,
    )


@BLUEPRINT.post('/v1/reservations')
def create() -> ty.Any:
    """Give a reservation to an instance that carries none."""
    authorization.enforce(policies.CREATE)
    validation.query(fields.NOTHING)
    wanted = validation.body(schemas.CREATE)
    own = services.current()
    made = reservations.create(
        own.database,
        own.announcer,
        wanted.pop('instance_uuid'),
        wanted,
        own.now(),
        authors.current(),
    )
    return _answer(
        made,
        202,
        Location=pagination.self_link('reservations', made.instance_uuid)[0][
            'href'
        ],
    )


@BLUEPRINT.patch('/v1/reservations/<instance_uuid>')
def update(instance_uuid: str) -> ty.Any:
    """Change what an instance is promised, while it runs."""
    authorization.enforce(policies.UPDATE)
    validation.query(fields.NOTHING)
    uuid = validation.instance_uuid(instance_uuid)
    own = services.current()
    changes = validation.body(schemas.UPDATE)
    expected = authors.expected(changes)
    return _answer(
        reservations.change(
            own.database,
            own.announcer,
            uuid,
            changes,
            own.now(),
            authors.current(),
            expected,
        ),
        202,
    )


@BLUEPRINT.delete('/v1/reservations/<instance_uuid>')
def delete(instance_uuid: str) -> ty.Any:
    """Remove an override, so that what the flavor says holds again.

    204 when nothing is left of the reservation: no agent had answered yet.
    """
    authorization.enforce(policies.DELETE)
    expected = authors.expected(validation.query(schemas.DELETE_QUERY))
    own = services.current()
    left = reservations.withdraw(
        own.database,
        own.announcer,
        validation.instance_uuid(instance_uuid),
        own.now(),
        authors.current(),
        expected,
    )
    if left is None:
        return '', 204
    return _answer(left, 202)


def _answer(
    one: reservations.Reservation, status: int, **headers: str
) -> ty.Any:
    return (
        {'reservation': _view(one)},
        status,
        {**authors.tag(one.generation), **headers},
    )


def _io(one: reservations.Reservation) -> dict[str, ty.Any] | None:
    if one.io is None:
        return None
    # As reported by an agent, which may be newer.
    return {
        name: one.io.get(name)
        for name in (
            'charging',
            'threads',
            'runtime_us',
            'period_us',
            'guest_runtime_us',
            'charged_mcpu',
            'debt_us',
            'code',
            'detail',
        )
    }


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
    return {
        'instance_uuid': one.instance_uuid,
        'instance_name': one.instance_name,
        'host': one.host,
        'present': one.present,
        'vcpus': one.vcpus,
        'source': one.source,
        'state': one.state,
        'generation': one.generation,
        'runtime_us': one.runtime_us,
        'period_us': one.period_us,
        'mode': one.mode,
        'backend': one.backend,
        'bandwidth_mcpu': one.bandwidth_mcpu,
        **{
            key: _value(key, one.specs.get(key))
            for key in extra_specs.OVERRIDABLE
        },
        'override': authors.view(one, policies.SHOW_AUTHOR),
        'enforced': enforced,
        'io': _io(one),
        'since': clock.iso(one.since),
        'attested_at': clock.iso(one.attested_at),
        'code': one.code,
        'detail': one.detail,
        'figures': dict(one.figures),
        'links': pagination.self_link('reservations', one.instance_uuid),
    }
