# SPDX-License-Identifier: Apache-2.0

"""``/v1/evaluations``: where instances would fit, and why not elsewhere."""

import typing as ty

import flask

from vsched_api.operations import errors
from vsched_api.operations import evaluations
from vsched_api.policies import evaluations as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import evaluations as schemas
from vsched_api.schemas import fields
from vsched_lib.contract import errors as contract_errors

Code = contract_errors.Code

BLUEPRINT = flask.Blueprint('evaluations', __name__)


@BLUEPRINT.post('/v1/evaluations')
@documentation.operation(
    policies.CREATE,
    schemas.EVALUATION,
    body=schemas.CREATE,
    errors={
        400: (
            Code.EXTRA_SPECS_INVALID,
            Code.EXTRA_SPECS_UNAVAILABLE,
            Code.RESERVATION_INVALID,
        ),
        404: (Code.HOST_NOT_FOUND,),
    },
)
def create() -> dict[str, ty.Any]:
    """Evaluate on which hosts instances would fit, and why not on others.

    Nothing is booted or stored. The data and the arithmetic are those of the
    scheduler filters.
    """
    authorization.enforce(policies.CREATE)
    validation.query(fields.NOTHING)
    wanted = validation.body(schemas.CREATE)
    own = services.current()
    instances = int(wanted.get('instances', 1))
    if 'demand_mcpu' in wanted:
        if not wanted.keys().isdisjoint(('extra_specs', 'vcpus', 'override')):
            raise errors.Invalid(
                'demand_mcpu: leave it out, or extra_specs, vcpus and override'
            )
        found = own.evaluations.demand(
            int(wanted['demand_mcpu']),
            instances,
            own.now(),
            wanted.get('hosts'),
        )
    elif 'extra_specs' in wanted:
        found = own.evaluations.flavor(
            wanted['extra_specs'],
            int(wanted.get('vcpus', 1)),
            instances,
            own.now(),
            wanted.get('hosts'),
            wanted.get('override'),
        )
    else:
        raise errors.Invalid(
            'extra_specs: it, or demand_mcpu, says what to look for'
        )
    size = int(pagination.limit(wanted))
    return {
        'evaluation': {
            'instances': instances,
            'hosts_total': len(found.hosts),
            'hosts_fit': sum(one.verdict.fits for one in found.hosts),
            'room': found.room,
            'all_fit': sum(found.placed.values()) == instances,
            'placed': [
                {'host': name, 'instances': count}
                for name, count in found.placed.items()
            ],
            'hosts': [_view(one) for one in found.hosts[:size]],
        }
    }


def _view(host: evaluations.Host) -> dict[str, ty.Any]:
    verdict, need = host.verdict, host.verdict.need
    return {
        'host': host.name,
        'state': 'down' if host.down else 'up',
        **views.picked(schemas.VERDICT, verdict),
        'score': round(host.score, 6),
        'weights': dict(host.weights),
        **views.picked(schemas.NEED, need),
        'measured_p99_lower_ppm': need.error_ppm,
        'problems': [
            {'cause': one.cause, 'detail': one.detail, 'unknown': one.unknown}
            for one in verdict.problems
        ],
    }
