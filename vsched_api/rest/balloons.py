# SPDX-License-Identifier: Apache-2.0

"""``/v1/balloons``: how many vCPUs instances are left with, and why.

An order is accepted once it is stored: 202, and it is pending until its
agent has answered.
"""

import typing as ty

import flask

from vsched_api.operations import balloons
from vsched_api.policies import balloons as policies
from vsched_api.rest import authorization
from vsched_api.rest import authors
from vsched_api.rest import clock
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import balloons as schemas
from vsched_api.schemas import fields

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
    validation.query(fields.NOTHING)
    return _answer(
        balloons.get(
            services.current().database,
            validation.instance_uuid(instance_uuid),
        ),
        200,
    )


@BLUEPRINT.post('/v1/balloons')
def create() -> ty.Any:
    """Order how many vCPUs a running instance uses."""
    authorization.enforce(policies.CREATE)
    validation.query(fields.NOTHING)
    wanted = validation.body(schemas.CREATE)
    own = services.current()
    expected = authors.expected(wanted)
    made = balloons.order(
        own.database,
        own.announcer,
        wanted.pop('instance_uuid'),
        wanted,
        own.now(),
        authors.current(),
        expected,
    )
    return _answer(
        made,
        202,
        Location=pagination.self_link('balloons', made.instance_uuid)[0][
            'href'
        ],
    )


@BLUEPRINT.patch('/v1/balloons/<instance_uuid>')
def update(instance_uuid: str) -> ty.Any:
    """Change what is ordered, or freeze what an instance uses."""
    authorization.enforce(policies.UPDATE)
    validation.query(fields.NOTHING)
    uuid = validation.instance_uuid(instance_uuid)
    own = services.current()
    changes = validation.body(schemas.UPDATE)
    expected = authors.expected(changes)
    return _answer(
        balloons.order(
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


@BLUEPRINT.delete('/v1/balloons/<instance_uuid>')
def delete(instance_uuid: str) -> ty.Any:
    """Leave the vCPUs of an instance to its agent again."""
    authorization.enforce(policies.DELETE)
    expected = authors.expected(validation.query(schemas.DELETE_QUERY))
    own = services.current()
    return _answer(
        balloons.withdraw(
            own.database,
            own.announcer,
            validation.instance_uuid(instance_uuid),
            own.now(),
            authors.current(),
            expected,
        ),
        202,
    )


def _answer(one: balloons.Balloon, status: int, **headers: str) -> ty.Any:
    return (
        {'balloon': _view(one)},
        status,
        {**authors.tag(one.generation), **headers},
    )


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
            'set_by': authors.view(one, policies.SHOW_AUTHOR),
        },
        'links': pagination.self_link('balloons', one.instance_uuid),
    }


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
