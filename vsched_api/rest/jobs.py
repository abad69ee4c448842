# SPDX-License-Identifier: Apache-2.0

"""``/v1/jobs``: what hosts are asked to do, and how far they have got."""

import typing as ty

import flask

from vsched_api.operations import jobs
from vsched_api.policies import jobs as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import fields
from vsched_api.schemas import jobs as schemas
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Code = errors.Code

BLUEPRINT = flask.Blueprint('jobs', __name__)

_VIEW = views.View(schemas.JOB)

_CHANGES = {
    messages.JobWanted.RUN: jobs.resume,
    messages.JobWanted.CANCEL: jobs.cancel,
}


@BLUEPRINT.get('/v1/jobs')
@documentation.operation(policies.LIST, schemas.LIST, query=schemas.LIST_QUERY)
def index() -> dict[str, ty.Any]:
    """List jobs, newest first."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    found = jobs.page(
        services.current().database,
        size + 1,
        query.get('marker'),
        host=query.get('host'),
        states=query.get('state', ()),
        kinds=query.get('kind', ()),
    )
    page, links = pagination.split(found, size, lambda job: job.uuid)
    return {'jobs': [view(job) for job in page], 'links': links}


@BLUEPRINT.get('/v1/jobs/<job_uuid>')
@documentation.operation(
    policies.SHOW, schemas.SHOW, errors={404: (Code.JOB_NOT_FOUND,)}
)
def show(job_uuid: str) -> dict[str, ty.Any]:
    """Show a job."""
    authorization.enforce(policies.SHOW)
    validation.query(fields.NOTHING)
    return {
        'job': view(
            jobs.get(
                services.current().database,
                validation.uuid('job_uuid', job_uuid),
            )
        )
    }


@BLUEPRINT.patch('/v1/jobs/<job_uuid>')
@documentation.operation(
    policies.UPDATE,
    schemas.SHOW,
    body=schemas.UPDATE,
    status=202,
    errors={
        404: (Code.JOB_NOT_FOUND,),
        409: (Code.JOB_FINISHED, Code.JOB_CHANGING, Code.JOB_EXISTS),
    },
)
def update(job_uuid: str) -> ty.Any:
    """Cancel a job, or resume it."""
    authorization.enforce(policies.UPDATE)
    validation.query(fields.NOTHING)
    uuid = validation.uuid('job_uuid', job_uuid)
    wanted = messages.JobWanted(validation.body(schemas.UPDATE)['wanted'])
    own = services.current()
    return {
        'job': view(
            _CHANGES[wanted](own.database, own.announcer, uuid, own.now())
        )
    }, 202


def view(job: jobs.Job) -> dict[str, ty.Any]:
    """A job as answers show it."""
    eta_s = job.eta_s(services.current().now())
    return _VIEW(
        job,
        parameters=dict(job.parameters),
        eta_s=None if eta_s is None else round(eta_s, 1),
        links=pagination.self_link('jobs', job.uuid),
    )
