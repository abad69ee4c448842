# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""``/v1/balloons``: how many vCPUs instances are left with, and why.

An order is accepted once it is stored: 202, and it is pending until its
agent has answered.
"""

import typing as ty

import flask

from vsched_api.operations import balloons
from vsched_api.policies import balloons as policies
from vsched_api.rest import authorization
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
        services.current().database, size + 1, query.get('marker'),
        host=query.get('host'), instance_uuid=query.get('instance_uuid'),
        states=query.get('state', ()))
    page, links = pagination.split(
        found, size, lambda one: one.instance_uuid)
    return {'balloons': [_view(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/balloons/history')
def history() -> dict[str, ty.Any]:
    """A page of balloons that are or were, newest first."""
    authorization.enforce(policies.HISTORY)
    query = validation.query(schemas.HISTORY_QUERY)
    size = pagination.limit(query)
    found = balloons.history(
        services.current().database, size + 1, query.get('marker'),
        host=query.get('host'), instance_uuid=query.get('instance_uuid'),
        outcomes=query.get('outcome', ()), start=query.get('start'),
        end=query.get('end'))
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {'history': [_change(one) for one in page], 'links': links}


@BLUEPRINT.get('/v1/balloons/<instance_uuid>')
def show(instance_uuid: str) -> dict[str, ty.Any]:
    """One instance."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    return {'balloon': _view(balloons.get(
        services.current().database,
        validation.instance_uuid(instance_uuid)))}


@BLUEPRINT.post('/v1/balloons')
def create() -> ty.Any:
    """Order how many vCPUs a running instance uses."""
    authorization.enforce(policies.CREATE)
    validation.query(fields.NOTHING)
    wanted = validation.body(schemas.CREATE)
    own = services.current()
    view = _view(balloons.order(
        own.database, own.announcer, wanted.pop('instance_uuid'), wanted,
        own.now()))
    return {'balloon': view}, 202, {'Location': view['links'][0]['href']}


@BLUEPRINT.patch('/v1/balloons/<instance_uuid>')
def update(instance_uuid: str) -> ty.Any:
    """Change what is ordered, or freeze what an instance uses."""
    authorization.enforce(policies.UPDATE)
    validation.query(fields.NOTHING)
    uuid = validation.instance_uuid(instance_uuid)
    own = services.current()
    return {'balloon': _view(balloons.order(
        own.database, own.announcer, uuid, validation.body(schemas.UPDATE),
        own.now()))}, 202


@BLUEPRINT.delete('/v1/balloons/<instance_uuid>')
def delete(instance_uuid: str) -> ty.Any:
    """Leave the vCPUs of an instance to its agent again."""
    authorization.enforce(policies.DELETE)
    validation.query(fields.NOTHING)
    own = services.current()
    return {'balloon': _view(balloons.withdraw(
        own.database, own.announcer,
        validation.instance_uuid(instance_uuid)))}, 202


_REPORTED = ('state', 'auto', 'dry_run', 'pinned', 'guest_answers', 'vcpus',
             'online_vcpus', 'min_vcpus', 'floor_vcpus', 'cause', 'failures')


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
        'order': None if one.order_state is None else {
            'state': one.order_state,
            'generation': one.generation,
            'target_vcpus': one.target_vcpus,
            'frozen': one.frozen,
            'code': one.code,
            'detail': one.detail,
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
        'duration_s': None if one.ended_at is None else round(
            max(0.0, one.ended_at - one.started_at), 3),
        'vcpus': one.vcpus,
        'before_vcpus': one.before_vcpus,
        'online_vcpus': one.online_vcpus,
        'manual': one.manual,
        'cause': one.cause,
        'took_ms': one.took_ms,
        'outcome': one.outcome,
        'detail': one.detail,
    }
