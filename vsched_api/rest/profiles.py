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

"""``/v1/hosts/{name}/profiles``: what hosts have measured of themselves.

``error`` says how wrong CPU allocation is there, ``overhead`` what the host's
work for the I/O of instances costs.

Measuring takes a while: it is a job, accepted once it is stored.
"""

import typing as ty
import urllib.parse

import flask

from vsched_api.operations import profiles
from vsched_api.policies import profiles as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import jobs
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import fields
from vsched_api.schemas import profiles as schemas
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error
from vsched_lib.presentation import error_csv

BLUEPRINT = flask.Blueprint('profiles', __name__)

_ERROR = '/v1/hosts/<name>/profiles/error'
_OVERHEAD = '/v1/hosts/<name>/profiles/overhead'

_TYPES = {'svg': 'image/svg+xml', 'png': 'image/png'}


@BLUEPRINT.post(_ERROR)
def create(name: str) -> ty.Any:
    """Have a host measure its error profile."""
    authorization.enforce(policies.CREATE)
    validation.query(fields.NOTHING)
    host = validation.name('name', name)
    own = services.current()
    view = jobs.view(profiles.measure(
        own.database, own.announcer, host,
        validation.body(schemas.CREATE), own.now()))
    return {'job': view}, 202, {'Location': view['links'][0]['href']}


@BLUEPRINT.get(_ERROR)
def show(name: str) -> ty.Any:
    """The newest error profile of each source, or one of them as CSV."""
    authorization.enforce(policies.SHOW)
    query = validation.query(schemas.SHOW_QUERY)
    host = validation.name('name', name)
    database = services.current().database
    if query.get('format') == 'csv':
        return flask.Response(
            profiles.csv(database, host, _source(query),
                         query.get('version')), mimetype='text/csv')
    return {'error_profiles': [
        {**_view(host, 'error', one), 'edges_ppm': list(error.EDGES_PPM),
         'quantile_parts_ppm': list(error.QUANTILES_PPM),
         'points': [_point(point) for point in one.points]}
        for one in profiles.newest(database, host, query.get('source'),
                                   query.get('version'))]}


@BLUEPRINT.get(_ERROR + '/versions')
def index(name: str) -> dict[str, ty.Any]:
    """A page of all error profiles that are kept, newest first."""
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.VERSIONS_QUERY)
    host = validation.name('name', name)
    size = pagination.limit(query)
    found = profiles.page(
        services.current().database, host, size + 1, query.get('marker'),
        query.get('source'))
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {'error_profiles': [_view(host, 'error', one) for one in page],
            'links': links}


@BLUEPRINT.get(_ERROR + '/plots/<figure>')
def plot(name: str, figure: str) -> flask.Response:
    """A picture of the newest error profile of one source."""
    authorization.enforce(policies.SHOW)
    query = validation.query(schemas.PLOT_QUERY)
    form = query.get('format', 'svg')
    return flask.Response(
        profiles.plot(services.current().database,
                      validation.name('name', name), figure, form,
                      _source(query), query.get('version')),
        mimetype=_TYPES[form])


@BLUEPRINT.post(_OVERHEAD)
def create_overhead(name: str) -> ty.Any:
    """Have a host measure its overhead profile."""
    authorization.enforce(policies.CREATE_OVERHEAD)
    validation.query(fields.NOTHING)
    host = validation.name('name', name)
    own = services.current()
    view = jobs.view(profiles.measure_overhead(
        own.database, own.announcer, host,
        validation.body(schemas.CREATE_OVERHEAD), own.now()))
    return {'job': view}, 202, {'Location': view['links'][0]['href']}


@BLUEPRINT.get(_OVERHEAD)
def show_overhead(name: str) -> ty.Any:
    """The newest overhead profile of each source, or one of them as CSV."""
    authorization.enforce(policies.SHOW_OVERHEAD)
    query = validation.query(schemas.SHOW_QUERY)
    host = validation.name('name', name)
    database = services.current().database
    if query.get('format') == 'csv':
        return flask.Response(
            profiles.overhead_table(database, host, _source(query),
                                    query.get('version')),
            mimetype='text/csv')
    return {'overhead_profiles': [
        {**_overhead(host, one),
         'points': [point.to_dict() for point in one.points]}
        for one in profiles.newest_overhead(
            database, host, query.get('source'), query.get('version'))]}


@BLUEPRINT.get(_OVERHEAD + '/versions')
def index_overhead(name: str) -> dict[str, ty.Any]:
    """A page of all overhead profiles that are kept, newest first."""
    authorization.enforce(policies.LIST_OVERHEAD)
    query = validation.query(schemas.VERSIONS_QUERY)
    host = validation.name('name', name)
    size = pagination.limit(query)
    found = profiles.page_overhead(
        services.current().database, host, size + 1, query.get('marker'),
        query.get('source'))
    page, links = pagination.split(found, size, lambda one: one.uuid)
    return {'overhead_profiles': [_overhead(host, one) for one in page],
            'links': links}


def _overhead(host: str, one: contract.OverheadProfile) -> dict[str, ty.Any]:
    return {**_view(host, 'overhead', one), 'good': one.good, 'r2': one.r2,
            'residual_ns': one.residual_ns, 'n': one.n,
            'prices': [price.to_dict() for price in one.prices]}


def _source(query: dict[str, ty.Any]) -> str:
    return str(query.get('source', contract.ProfileSource.BENCHMARK))


def _view(host: str, kind: str, one: (
        contract.ErrorProfile | contract.OverheadProfile),
        ) -> dict[str, ty.Any]:
    address = pagination.href(
        '/v1/hosts/%s/profiles/%s' % (host, kind), urllib.parse.urlencode(
            {'source': one.source, 'version': one.version}))
    return {
        'uuid': one.uuid,
        'host': host,
        'source': one.source,
        'version': one.version,
        'started_at': clock.iso(one.started_at),
        'finished_at': clock.iso(one.finished_at),
        'kernel': one.kernel,
        'tick_us': one.tick_us,
        'cpus': one.cpus,
        'load': one.load,
        'quick': one.quick,
        'complete': one.complete,
        'features': one.features,
        'notes': list(one.notes),
        'links': [{'rel': 'self', 'href': address}],
    }


def _point(point: contract.ErrorPoint) -> dict[str, ty.Any]:
    found = point.statistics
    return {**point.to_dict(), 'bounds': [
        {'confidence_pct': confidence_pct,
         'lower_ppm': found.lower_ppm(confidence_pct / 100),
         'size_ppm': found.size_ppm(confidence_pct / 100)}
        for confidence_pct in error_csv.CONFIDENCES_PCT]}
