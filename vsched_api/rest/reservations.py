# SPDX-License-Identifier: Apache-2.0

"""``/v1/reservations``: what instances are promised, and changing it."""

from collections.abc import Mapping
from collections.abc import Sequence
from decimal import Decimal
import typing as ty

import flask

from vsched_api.operations import reservations
from vsched_api.policies import reservations as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import overrides
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
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
    return _NOUN.show(instance_uuid, reservations.get)


@BLUEPRINT.post('/v1/reservations')
def create() -> ty.Any:
    """Give a reservation to an instance that carries none."""
    authorization.enforce(policies.CREATE)
    return _NOUN.create(schemas.CREATE, reservations.create, conditional=False)


@BLUEPRINT.patch('/v1/reservations/<instance_uuid>')
def update(instance_uuid: str) -> ty.Any:
    """Change what an instance is promised, while it runs."""
    authorization.enforce(policies.UPDATE)
    return _NOUN.update(instance_uuid, schemas.UPDATE, reservations.change)


@BLUEPRINT.delete('/v1/reservations/<instance_uuid>')
def delete(instance_uuid: str) -> ty.Any:
    """Remove an override, so that what the flavor says holds again.

    204 when nothing is left of the reservation: no agent had answered yet.
    """
    authorization.enforce(policies.DELETE)
    return _NOUN.delete(
        instance_uuid, schemas.DELETE_QUERY, reservations.withdraw
    )


_IO = (
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
_COMMUNICATION = ('granularity', 'runtime_ns', 'period_ns', 'code', 'detail')


def _reported(
    fields: Mapping[str, ty.Any] | None, names: Sequence[str]
) -> dict[str, ty.Any] | None:
    if fields is None:
        return None
    # As reported by an agent, which may be newer.
    return {name: fields.get(name) for name in names}


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
        'override': overrides.author_view(one, policies.SHOW_AUTHOR),
        'enforced': enforced,
        'io': _reported(one.io, _IO),
        'communication': _reported(one.communication, _COMMUNICATION),
        'since': clock.iso(one.since),
        'attested_at': clock.iso(one.attested_at),
        'code': one.code,
        'detail': one.detail,
        'figures': dict(one.figures),
        'links': pagination.self_link('reservations', one.instance_uuid),
    }


_NOUN = overrides.Noun('reservation', 'reservations', _view)
