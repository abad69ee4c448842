# SPDX-License-Identifier: Apache-2.0

"""``/v1/hosts``: hosts, as their agents tell of them."""

import dataclasses
import http
import typing as ty

import flask

from vsched_api.operations import audits
from vsched_api.operations import host_deletion
from vsched_api.operations import hosts
from vsched_api.policies import hosts as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import hosts as schemas

BLUEPRINT = flask.Blueprint('hosts', __name__)


@BLUEPRINT.get('/v1/hosts')
def index() -> dict[str, ty.Any]:
    """A page of hosts, in the order of their names."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    own = services.current()
    found = hosts.page(
        own.database,
        size + 1,
        query.get('marker'),
        own.now(),
        own.conf.api.host_down_after_s,
    )
    page, links = pagination.split(found, size, lambda host: host.name)
    return {'hosts': [_view(host) for host in page], 'links': links}


@BLUEPRINT.get('/v1/hosts/<name>')
def show(name: str) -> dict[str, ty.Any]:
    """One host."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    own = services.current()
    return {
        'host': _view(
            hosts.get(
                own.database,
                validation.name('name', name),
                own.now(),
                own.conf.api.host_down_after_s,
            )
        )
    }


@BLUEPRINT.delete('/v1/hosts/<name>')
def delete(name: str) -> tuple[str, int]:
    """Delete a host that does not report any more."""
    authorization.enforce(policies.DELETE)
    query = validation.query(schemas.DELETE_QUERY)
    own = services.current()
    host_deletion.delete(
        own.database,
        validation.name('name', name),
        own.now(),
        own.conf.api.host_down_after_s,
        bool(query.get('force')),
    )
    return '', http.HTTPStatus.NO_CONTENT


@BLUEPRINT.get('/v1/hosts/<name>/audit')
def audit(name: str) -> dict[str, ty.Any]:
    """Where placement, database and kernel differ about a host."""
    authorization.enforce(policies.AUDIT)
    validation.query(fields.NOTHING)
    own = services.current()
    host = hosts.get(
        own.database,
        validation.name('name', name),
        own.now(),
        own.conf.api.host_down_after_s,
    )
    found = audits.ask(own.conf, own.database, host, own.now())
    return {
        'audit': {
            'host': host.name,
            'agrees': not found,
            'differences': [dataclasses.asdict(one) for one in found],
        }
    }


def _view(host: hosts.Host) -> dict[str, ty.Any]:
    info = host.info
    view: dict[str, ty.Any] = {
        'name': host.name,
        'state': host.state,
        'last_report_at': clock.iso(host.last_report_at),
        'clock_skew_s': host.clock_skew_s,
        'last_batch': host.last_batch,
        'overrides_generation': host.overrides_generation,
        'instances': host.instances,
        'problem': host.problem,
        'links': pagination.self_link('hosts', host.name),
    }
    for name in (
        'agent_version',
        'kernel',
        'boot_id',
        'hypervisor',
        'cpus',
        'tick_us',
        'capacity_mcpu',
        'admitted_mcpu',
        'reserve_mcpu',
    ):
        view[name] = None if info is None else getattr(info, name)
    view['backends'] = (
        []
        if info is None
        else [
            {
                'name': one.name,
                'usable': one.usable,
                'reasons': list(one.reasons),
            }
            for one in info.backends
        ]
    )
    view['placement'] = (
        None
        if info is None or info.placement is None
        else info.placement.to_dict()
    )
    view['policy'] = (
        None if info is None or info.policy is None else info.policy.to_dict()
    )
    checked = host.verification
    view['verification'] = (
        None
        if checked is None
        else {
            'checked_at': clock.iso(checked.checked_at),
            'cpus': checked.cpus,
            'contradictions': [
                {'code': code, 'detail': detail}
                for code, detail in checked.contradictions
            ],
        }
    )
    return view
