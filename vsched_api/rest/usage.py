# SPDX-License-Identifier: Apache-2.0

"""``/v1/usage``: how much CPU time instances got, and what hosts did."""

from collections.abc import Mapping
from collections.abc import Sequence
import csv
import io
import typing as ty

import flask

from vsched_api.operations import usage
from vsched_api.operations import usage_counts
from vsched_api.policies import usage as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import documentation
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import usage as schemas

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

_Found = usage.Sample | usage.Bucket | usage.HostSample

_TIMES = frozenset(('at', 'first_at', 'last_at'))


@BLUEPRINT.get('/v1/usage')
@documentation.operation(
    policies.LIST,
    schemas.LIST,
    query=schemas.LIST_QUERY,
    media={documentation.CSV: {'type': 'string'}},
    headers=(documentation.LINK,),
)
def index() -> flask.Response:
    """List how much CPU time instances got, or what the CPUs of hosts did.

    Interval by interval, or summed up by minute or by hour.
    """
    authorization.enforce(policies.LIST)
    query = validation.query(schemas.LIST_QUERY)
    size = pagination.limit(query)
    query.pop('limit', None)
    as_csv = _wants_csv(query.pop('format', None))
    newest_first = query.pop('sort_dir', 'asc') == 'desc'
    resolution = usage.Resolution(query.pop('resolution', 'raw'))
    subject = usage.Subject(query.pop('of', 'instances'))
    names = _COLUMNS[subject, resolution is not usage.Resolution.RAW]
    found = _found(subject, resolution, size + 1, newest_first, query)
    page, links = pagination.split(found, size, _number)
    views = [_view(one, names) for one in page]
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


def _view(one: _Found, names: Sequence[str]) -> dict[str, ty.Any]:
    figures = one.figures() if isinstance(one, usage_counts.Executions) else {}
    return {
        name: clock.iso(value) if name in _TIMES else value
        for name in names
        for value in (
            figures[name] if name in figures else getattr(one, name),
        )
    }


def _csv(views: Sequence[Mapping[str, ty.Any]], names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator='\n')
    writer.writeheader()
    writer.writerows(views)
    return text.getvalue()
