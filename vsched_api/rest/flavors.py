# SPDX-License-Identifier: Apache-2.0

"""``/v1/flavors``: what flavors have to claim in placement."""

import typing as ty

import flask

from vsched_api.operations import flavors
from vsched_api.policies import flavors as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import fields
from vsched_api.schemas import flavors as schemas
from vsched_lib.contract import errors as contract_errors

Code = contract_errors.Code

BLUEPRINT = flask.Blueprint('flavors', __name__)


@BLUEPRINT.post('/v1/flavors/claims')
@documentation.operation(
    policies.CLAIM,
    schemas.ANSWER,
    body=schemas.CLAIM,
    errors={400: (Code.EXTRA_SPECS_INVALID, Code.EXTRA_SPECS_UNAVAILABLE)},
)
def claim() -> dict[str, ty.Any]:
    """Compute what a flavor has to claim in placement.

    Nothing is stored, and Nova is not asked. The cost of I/O that comes on
    top of a reservation is that of the most expensive host.
    """
    authorization.enforce(policies.CLAIM)
    validation.query(fields.NOTHING)
    wanted = validation.body(schemas.CLAIM)
    own = services.current()
    found = flavors.claim(
        int(wanted['vcpus']),
        wanted['extra_specs'],
        lambda: own.evaluations.known(own.now()),
    )
    return {
        'claim': {
            'agrees': found.agrees,
            'extra_specs': dict(found.extra_specs),
            **views.picked(schemas.RESERVATION, found.reservation),
            'claim_mcpu': found.guest_mcpu + found.overhead_mcpu,
            'guest_mcpu': found.guest_mcpu,
            'overhead_mcpu': found.overhead_mcpu,
            'notes': list(found.notes),
        }
    }
