# SPDX-License-Identifier: Apache-2.0

"""``/v1/hosts/{name}/profiles``: what hosts have measured of themselves.

``error`` says how wrong CPU allocation is there, ``overhead`` what the host's
work for the I/O of instances costs. Both are asked for alike.

Measuring takes a while: it is a job, accepted once it is stored.
"""

from collections.abc import Callable
import dataclasses
import typing as ty
import urllib.parse

import flask

from vsched_api.operations import profiles
from vsched_api.policies import profiles as policies
from vsched_api.rest import authorization
from vsched_api.rest import documentation
from vsched_api.rest import jobs
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.rest import views
from vsched_api.schemas import fields
from vsched_api.schemas import jobs as job_schemas
from vsched_api.schemas import profiles as schemas
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error
from vsched_lib.presentation import error_csv

Code = contract_errors.Code

BLUEPRINT = flask.Blueprint('profiles', __name__)

_ERROR = '/v1/hosts/<name>/profiles/error'
_OVERHEAD = '/v1/hosts/<name>/profiles/overhead'

View = dict[str, ty.Any]

# Of what all kinds have.
_VIEW = views.View(schemas.ERROR_PROFILE)


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of profiles, and what answers for it.

    :param listed: what a list of them is called.
    :param body: what a request to measure may say.
    :param summary: fields of a list's entries, besides those of all.
    :param detail: further fields of one that is shown.
    """

    name: str
    listed: str
    create_policy: str
    show_policy: str
    list_policy: str
    body: fields.Schema
    measure: Callable[..., ty.Any]
    newest: Callable[..., ty.Any]
    page: Callable[..., ty.Any]
    csv: Callable[..., str]
    summary: Callable[[ty.Any], View]
    detail: Callable[[ty.Any], View]

    def view(self, host: str, one: contract.Profile) -> View:
        return {**_view(host, self.name, one), **self.summary(one)}


@BLUEPRINT.post(_ERROR)
@documentation.operation(
    policies.CREATE,
    job_schemas.SHOW,
    body=schemas.CREATE,
    status=202,
    headers=(documentation.LOCATION,),
    errors={404: (Code.HOST_NOT_FOUND,), 409: (Code.JOB_EXISTS,)},
)
def create(name: str) -> ty.Any:
    """Measure the error profile of a host.

    A host has one unfinished job of this kind at most.
    """
    return _create(_ERRORS, name)


@BLUEPRINT.get(_ERROR)
@documentation.operation(
    policies.SHOW,
    schemas.SHOW,
    query=schemas.SHOW_QUERY,
    media={documentation.CSV: {'type': 'string'}},
    errors={404: (Code.HOST_NOT_FOUND, Code.PROFILE_NOT_FOUND)},
)
def show(name: str) -> ty.Any:
    """Show the newest error profile of each source, or one as CSV."""
    return _show(_ERRORS, name)


@BLUEPRINT.get(_ERROR + '/versions')
@documentation.operation(
    policies.LIST,
    schemas.LIST,
    query=schemas.VERSIONS_QUERY,
    errors={404: (Code.HOST_NOT_FOUND,)},
)
def index(name: str) -> View:
    """List all error profiles that are kept, newest first.

    Without their points: the links of each lead to the whole.
    """
    return _index(_ERRORS, name)


@BLUEPRINT.post(_OVERHEAD)
@documentation.operation(
    policies.CREATE_OVERHEAD,
    job_schemas.SHOW,
    body=schemas.CREATE_OVERHEAD,
    status=202,
    headers=(documentation.LOCATION,),
    errors={404: (Code.HOST_NOT_FOUND,), 409: (Code.JOB_EXISTS,)},
)
def create_overhead(name: str) -> ty.Any:
    """Measure what the work of a host for the I/O of instances costs.

    A host has one unfinished job of this kind at most.
    """
    return _create(_OVERHEADS, name)


@BLUEPRINT.get(_OVERHEAD)
@documentation.operation(
    policies.SHOW_OVERHEAD,
    schemas.SHOW_OVERHEAD,
    query=schemas.SHOW_QUERY,
    media={documentation.CSV: {'type': 'string'}},
    errors={404: (Code.HOST_NOT_FOUND, Code.PROFILE_NOT_FOUND)},
)
def show_overhead(name: str) -> ty.Any:
    """Show the newest overhead profile of each source, or one as CSV."""
    return _show(_OVERHEADS, name)


@BLUEPRINT.get(_OVERHEAD + '/versions')
@documentation.operation(
    policies.LIST_OVERHEAD,
    schemas.LIST_OVERHEAD,
    query=schemas.VERSIONS_QUERY,
    errors={404: (Code.HOST_NOT_FOUND,)},
)
def index_overhead(name: str) -> View:
    """List all overhead profiles that are kept, newest first.

    Without their points: the links of each lead to the whole.
    """
    return _index(_OVERHEADS, name)


def _create(kind: _Kind, name: str) -> ty.Any:
    authorization.enforce(kind.create_policy)
    validation.query(fields.NOTHING)
    host = validation.name('name', name)
    own = services.current()
    view = jobs.view(
        kind.measure(
            own.database,
            own.announcer,
            host,
            validation.body(kind.body),
            own.now(),
        )
    )
    return {'job': view}, 202, {'Location': view['links'][0]['href']}


def _show(kind: _Kind, name: str) -> ty.Any:
    authorization.enforce(kind.show_policy)
    query = validation.query(schemas.SHOW_QUERY)
    host = validation.name('name', name)
    database = services.current().database
    if query.get('format') == 'csv':
        return flask.Response(
            kind.csv(database, host, _source(query), query.get('version')),
            mimetype='text/csv',
        )
    return {
        kind.listed: [
            {**kind.view(host, one), **kind.detail(one)}
            for one in kind.newest(
                database, host, query.get('source'), query.get('version')
            )
        ]
    }


def _index(kind: _Kind, name: str) -> View:
    authorization.enforce(kind.list_policy)
    query = validation.query(schemas.VERSIONS_QUERY)
    host = validation.name('name', name)
    size = pagination.limit(query)
    found = kind.page(
        services.current().database,
        host,
        size + 1,
        query.get('marker'),
        query.get('source'),
    )
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {
        kind.listed: [kind.view(host, one) for one in page],
        'links': links,
    }


def _source(query: dict[str, ty.Any]) -> str:
    return str(query.get('source', contract.ProfileSource.BENCHMARK))


def _view(host: str, kind: str, one: contract.Profile) -> View:
    address = pagination.href(
        '/v1/hosts/%s/profiles/%s' % (host, kind),
        urllib.parse.urlencode({'source': one.source, 'version': one.version}),
    )
    return _VIEW(
        one,
        host=host,
        notes=list(one.notes),
        links=[{'rel': 'self', 'href': address}],
    )


def _point(point: contract.ErrorPoint) -> View:
    found = point.statistics
    return {
        **point.to_dict(),
        'bounds': [
            {
                'confidence_pct': confidence_pct,
                'lower_ppm': found.lower_ppm(confidence_pct / 100),
                'size_ppm': found.size_ppm(confidence_pct / 100),
            }
            for confidence_pct in error_csv.CONFIDENCES_PCT
        ],
    }


def _error_detail(one: contract.ErrorProfile) -> View:
    return {
        'edges_ppm': list(error.EDGES_PPM),
        'quantile_parts_ppm': list(error.QUANTILES_PPM),
        'points': [_point(point) for point in one.points],
    }


def _overhead_summary(one: contract.OverheadProfile) -> View:
    return {
        **views.picked(schemas.FIT, one),
        'prices': [price.to_dict() for price in one.prices],
    }


def _overhead_detail(one: contract.OverheadProfile) -> View:
    return {'points': [point.to_dict() for point in one.points]}


_ERRORS = _Kind(
    name='error',
    listed='error_profiles',
    create_policy=policies.CREATE,
    show_policy=policies.SHOW,
    list_policy=policies.LIST,
    body=schemas.CREATE,
    measure=profiles.measure,
    newest=profiles.newest,
    page=profiles.page,
    csv=profiles.csv,
    summary=lambda one: {},
    detail=_error_detail,
)

_OVERHEADS = _Kind(
    name='overhead',
    listed='overhead_profiles',
    create_policy=policies.CREATE_OVERHEAD,
    show_policy=policies.SHOW_OVERHEAD,
    list_policy=policies.LIST_OVERHEAD,
    body=schemas.CREATE_OVERHEAD,
    measure=profiles.measure_overhead,
    newest=profiles.newest_overhead,
    page=profiles.page_overhead,
    csv=profiles.overhead_table,
    summary=_overhead_summary,
    detail=_overhead_detail,
)
