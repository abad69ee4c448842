# SPDX-License-Identifier: Apache-2.0

"""``/v1/usage``: how much CPU time instances got, and what hosts did."""

from collections.abc import Mapping
from collections.abc import Sequence
import csv
import io
import typing as ty

import flask

from vsched_api.operations import instances
from vsched_api.operations import usage
from vsched_api.operations import usage_counts
from vsched_api.operations import usage_totals
from vsched_api.policies import instances as instance_policies
from vsched_api.policies import usage as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import documentation
from vsched_api.rest import errors
from vsched_api.rest import pagination
from vsched_api.rest import servers
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import usage as schemas
from vsched_lib.contract import errors as contract_errors

Code = contract_errors.Code

BLUEPRINT = flask.Blueprint('usage', __name__)

_COLUMNS = {
    # By the subject, and whether it is summed up.
    key: tuple(schema['properties'])
    for key, schema in {
        (usage.Subject.INSTANCES, False): schemas.SAMPLE,
        (usage.Subject.INSTANCES, True): schemas.BUCKET,
        (usage.Subject.HOSTS, False): schemas.HOST_SAMPLE,
        (usage.Subject.HOSTS, True): schemas.HOST_BUCKET,
    }.items()
}

_TOTAL_COLUMNS = tuple(schemas.TOTAL['properties'])

_Found = usage.Sample | usage.Bucket | usage.HostSample

_TIMES = frozenset(('at', 'first_at', 'last_at'))

#: What a spreadsheet takes for the beginning of a formula. Owners choose the
#: names of their servers, and operators open the tables.
_FORMULA = ('=', '+', '-', '@', '\t', '\r')


@BLUEPRINT.get('/v1/usage')
@documentation.operation(
    policies.LIST,
    schemas.LIST,
    query=schemas.LIST_QUERY,
    media={documentation.CSV: {'type': 'string'}},
    headers=(documentation.LINK,),
    errors={404: (Code.INSTANCE_NOT_FOUND,)},
)
def index() -> flask.Response:
    """List how much CPU time instances got, or what the CPUs of hosts did.

    Interval by interval, or summed up by minute or by hour. 404 only for
    those who may see the instances of a project: when the only instance that
    is named is not one of them.
    """
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    subject = usage.Subject(query.pop('of', 'instances'))
    servers.check_query(query)
    _select(subject, query)
    size = pagination.limit(query)
    query.pop('limit', None)
    as_csv = _wants_csv(query.pop('format', None))
    newest_first = query.pop('sort_dir', 'asc') == 'desc'
    resolution = usage.Resolution(query.pop('resolution', 'raw'))
    names = _COLUMNS[subject, resolution is not usage.Resolution.RAW]
    found = _found(subject, resolution, size + 1, newest_first, query)
    page, links = pagination.split(found, size, _number)
    views = _views(page, names, subject)
    if as_csv:
        answer = flask.Response(
            _csv(views, names),
            mimetype='text/csv',
            headers={
                'Link': ', '.join(
                    '<%(href)s>; rel="%(rel)s"' % link for link in links
                )
            },
        )
    else:
        answer = flask.jsonify({'usage': views, 'links': links})
    answer.vary.add('Accept')
    return answer


@BLUEPRINT.get('/v1/usage/totals')
@documentation.operation(
    policies.LIST,
    schemas.TOTALS,
    query=schemas.TOTALS_QUERY,
    errors={404: (Code.INSTANCE_NOT_FOUND,)},
)
def totals() -> dict[str, ty.Any]:
    """Sum what instances got in the newest part of the time.

    Of all hosts that are up, page by page. The window of each host ends with
    its own newest interval. 404 only for those who may see the instances of a
    project: when the only instance that is named is not one of them.
    """
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.TOTALS_QUERY)
    servers.check_query(query)
    _select(usage.Subject.INSTANCES, query)
    own = services.current()
    size = min(pagination.limit(query), usage_totals.MAX_HOSTS)
    query.pop('limit', None)
    found = usage_totals.page(
        own.database,
        size + 1,
        query.pop('marker', None),
        own.now() - own.conf.api.host_down_after_s,
        query.pop('window_us', usage_totals.WINDOW_US),
        **query,
    )
    page, links = pagination.split(found, size, lambda one: one.number)
    return {
        'totals': _views(
            [total for one in page for total in one.totals],
            _TOTAL_COLUMNS,
            usage.Subject.INSTANCES,
        ),
        'hosts': [
            {
                'host': one.host,
                'newest_at': clock.iso(one.newest_at),
                'covered_us': one.covered_us,
            }
            for one in page
        ]
        if authorization.allows(instance_policies.SHOW_HOST)
        else [],
        'links': links,
    }


def _found(
    subject: usage.Subject,
    resolution: usage.Resolution,
    limit: int,
    newest_first: bool,
    query: Mapping[str, ty.Any],
) -> Sequence[_Found]:
    database = services.current().database
    if subject is usage.Subject.HOSTS:
        return usage.of_hosts(
            database, resolution, limit, newest_first=newest_first, **query
        )
    if resolution is usage.Resolution.RAW:
        return usage.page(database, limit, newest_first=newest_first, **query)
    return usage.buckets(
        database, resolution, limit, newest_first=newest_first, **query
    )


def _select(subject: usage.Subject, query: dict[str, ty.Any]) -> None:
    """Limit a query to the instances that the request may see.

    :raises errors.Forbidden: when it requests more.
    """
    named = query.pop('instance_uuid', [])
    if subject is usage.Subject.HOSTS and not authorization.allows(
        policies.LIST
    ):
        raise errors.Forbidden(
            'of: policy %s allows only instances of the project of the token'
            % policies.LIST
        )
    if len(named) == 1:
        authorization.enforce_instance(policies.LIST, *named)
    query.update(
        instance_uuids=named,
        project_id=authorization.limit(policies.LIST, query.get('project_id')),
    )


def _number(one: _Found) -> int:
    return one.number


def _wants_csv(form: str | None) -> bool:
    if form is not None:
        return form == 'csv'
    return (
        flask.request.accept_mimetypes.best_match(
            ('application/json', 'text/csv')
        )
        == 'text/csv'
    )


def _views(
    page: Sequence[_Found | usage_totals.Total],
    names: Sequence[str],
    subject: usage.Subject,
) -> list[dict[str, ty.Any]]:
    if subject is usage.Subject.HOSTS:
        return [_view(one, names, {}) for one in page]
    known = instances.servers(
        services.current().database, {_instance(one) for one in page} - {''}
    )
    return [
        servers.shown(_view(one, names, server._asdict()), ['host'])
        for one in page
        for server in (known.get(_instance(one), instances.UNKNOWN),)
    ]


def _instance(one: _Found | usage_totals.Total) -> str:
    """Return the UUID of its instance; empty for a sum of all of a host."""
    return getattr(one, 'instance_uuid', None) or ''


def _view(
    one: _Found | usage_totals.Total,
    names: Sequence[str],
    more: Mapping[str, ty.Any],
) -> dict[str, ty.Any]:
    if isinstance(one, usage_counts.Executions):
        more = {**more, **one.figures()}
    return {
        name: clock.iso(value) if name in _TIMES else value
        for name in names
        for value in (more[name] if name in more else getattr(one, name),)
    }


def _csv(views: Sequence[Mapping[str, ty.Any]], names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator='\n')
    writer.writeheader()
    for view in views:
        writer.writerow({name: _cell(value) for name, value in view.items()})
    return text.getvalue()


def _cell(value: ty.Any) -> ty.Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value
