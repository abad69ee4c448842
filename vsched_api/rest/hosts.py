# SPDX-License-Identifier: Apache-2.0

"""``/v1/hosts``: hosts, as their agents report them."""

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
from vsched_api.rest import documentation
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import fields
from vsched_api.schemas import hosts as schemas
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages

Code = contract_errors.Code

BLUEPRINT = flask.Blueprint('hosts', __name__)

_VIEW = views.View(schemas.HOST)
_DETAILS = views.View(schemas.DETAILED_HOST)

_PROBLEM = messages.FindingLevel.PROBLEM.value
_NOTE = messages.FindingLevel.NOTE.value


@BLUEPRINT.get('/v1/hosts')
@documentation.operation(policies.LIST, schemas.LIST, query=schemas.LIST_QUERY)
def index() -> dict[str, ty.Any]:
    """List hosts, in the order of their names or of another key."""
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
        state=query.get('state'),
        name_prefix=query.get('name_prefix'),
        backend=query.get('backend'),
        sort_key=query.get('sort_key', 'name'),
        descending=query.get('sort_dir') == 'desc',
    )
    page, links = pagination.split(found, size, lambda host: host.name)
    return {'hosts': [_view(host) for host in page], 'links': links}


@BLUEPRINT.get('/v1/hosts/<name>')
@documentation.operation(
    policies.SHOW, schemas.SHOW, errors={404: (Code.HOST_NOT_FOUND,)}
)
def show(name: str) -> dict[str, ty.Any]:
    """Show a host."""
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
            ),
            _DETAILS,
        )
    }


@BLUEPRINT.delete('/v1/hosts/<name>')
@documentation.operation(
    policies.DELETE,
    None,
    query=schemas.DELETE_QUERY,
    status=204,
    errors={404: (Code.HOST_NOT_FOUND,), 409: (Code.HOST_IN_USE,)},
)
def delete(name: str) -> tuple[str, int]:
    """Delete a host that does not report any more.

    With all that is known of it: its instances, reservations, usage, events,
    jobs and profiles. Overrides belong to instances and stay with those that
    another host lists. A deleted host that reports again is a new one.
    """
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
@documentation.operation(
    policies.AUDIT,
    schemas.AUDIT,
    errors={
        404: (Code.HOST_NOT_FOUND,),
        501: (Code.PLACEMENT_UNAVAILABLE,),
        503: (Code.PLACEMENT_UNAVAILABLE,),
    },
)
def audit(name: str) -> dict[str, ty.Any]:
    """Compare placement, database and kernel about a host."""
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


def _view(host: hosts.Host, view: views.View = _VIEW) -> dict[str, ty.Any]:
    info = host.info
    checked = host.verification
    return view(
        host,
        **views.picked(schemas.INFO, info),
        backends=[]
        if info is None
        else [one.to_dict() for one in info.backends],
        placement=None
        if info is None or info.placement is None
        else info.placement.to_dict(),
        policy=None
        if info is None or info.policy is None
        else info.policy.to_dict(),
        finding_counts=_finding_counts(info),
        findings=None
        if info is None or info.findings is None
        else [one.to_dict() for one in info.findings],
        verification=None
        if checked is None
        else {
            'checked_at': clock.iso(checked.checked_at),
            'cpus': checked.cpus,
            'contradictions': [
                {'code': code, 'detail': detail}
                for code, detail in checked.contradictions
            ],
        },
        links=pagination.self_link('hosts', host.name),
    )


def _finding_counts(info: messages.HostInfo | None) -> dict[str, int] | None:
    if info is None or info.findings is None:
        return None
    problems = sum(one.level == _PROBLEM for one in info.findings)
    return {_PROBLEM: problems, _NOTE: len(info.findings) - problems}
