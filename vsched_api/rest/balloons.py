# SPDX-License-Identifier: Apache-2.0

"""``/v1/balloons``: how many vCPUs instances are left with, and why."""

import typing as ty

import flask

from vsched_api.operations import balloons
from vsched_api.policies import balloons as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import overrides
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import balloons as schemas

BLUEPRINT = flask.Blueprint('balloons', __name__)


@BLUEPRINT.get('/v1/balloons')
def index() -> dict[str, ty.Any]:
    """A page of instances, in the order of their UUIDs."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    found = balloons.page(
        services.current().database,
        size + 1,
        query.get('marker'),
        host=query.get('host'),
        instance_uuid=query.get('instance_uuid'),
        states=query.get('state', ()),
    )
    page, links = pagination.split(found, size, lambda one: one.instance_uuid)
    return {'balloons': [_view(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/balloons/history')
def history() -> dict[str, ty.Any]:
    """A page of balloons that are or were, newest first."""
    authorization.enforce(policies.HISTORY)
    query = validation.query(schemas.HISTORY_QUERY)
    size = pagination.limit(query)
    found = balloons.history(
        services.current().database,
        size + 1,
        query.get('marker'),
        host=query.get('host'),
        instance_uuid=query.get('instance_uuid'),
        outcomes=query.get('outcome', ()),
        start=query.get('start'),
        end=query.get('end'),
    )
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {'history': [_change(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/balloons/<instance_uuid>')
def show(instance_uuid: str) -> ty.Any:
    """One instance."""
    authorization.enforce(policies.SHOW)
    return _NOUN.show(instance_uuid, balloons.get)


@BLUEPRINT.post('/v1/balloons')
def create() -> ty.Any:
    """Order how many vCPUs a running instance uses."""
    authorization.enforce(policies.CREATE)
    return _NOUN.create(schemas.CREATE, balloons.order)


@BLUEPRINT.patch('/v1/balloons/<instance_uuid>')
def update(instance_uuid: str) -> ty.Any:
    """Change what is ordered, or freeze what an instance uses."""
    authorization.enforce(policies.UPDATE)
    return _NOUN.update(instance_uuid, schemas.UPDATE, balloons.order)


@BLUEPRINT.delete('/v1/balloons/<instance_uuid>')
def delete(instance_uuid: str) -> ty.Any:
    """Leave the vCPUs of an instance to its agent again."""
    authorization.enforce(policies.DELETE)
    return _NOUN.delete(instance_uuid, schemas.DELETE_QUERY, balloons.withdraw)


_REPORTED = (
    'state',
    'auto',
    'dry_run',
    'pinned',
    'guest_answers',
    'vcpus',
    'online_vcpus',
    'min_vcpus',
    'floor_vcpus',
    'cause',
    'failures',
)


def _view(one: balloons.Balloon) -> dict[str, ty.Any]:
    report = one.report
    return {
        'instance_uuid': one.instance_uuid,
        'instance_name': one.instance_name,
        'host': one.host,
        'present': one.present,
        **{name: getattr(report, name, None) for name in _REPORTED},
        'cpus': [] if report is None else list(report.cpus),
        'since': clock.iso(report.since if report else None),
        'not_before': clock.iso(report.not_before if report else None),
        'order': None
        if one.order_state is None
        else {
            'state': one.order_state,
            'generation': one.generation,
            'target_vcpus': one.target_vcpus,
            'frozen': one.frozen,
            'code': one.code,
            'detail': one.detail,
            'set_by': overrides.author_view(one, policies.SHOW_AUTHOR),
        },
        'links': pagination.self_link('balloons', one.instance_uuid),
    }


_NOUN = overrides.Noun('balloon', 'balloons', _view)


def _change(one: balloons.Change) -> dict[str, ty.Any]:
    return {
        'uuid': one.uuid,
        'host': one.host,
        'instance_uuid': one.instance_uuid,
        'started_at': clock.iso(one.started_at),
        'ended_at': clock.iso(one.ended_at),
        'duration_s': None
        if one.ended_at is None
        else round(max(0.0, one.ended_at - one.started_at), 3),
        'vcpus': one.vcpus,
        'before_vcpus': one.before_vcpus,
        'online_vcpus': one.online_vcpus,
        'manual': one.manual,
        'cause': one.cause,
        'took_ms': one.took_ms,
        'outcome': one.outcome,
        'detail': one.detail,
    }
