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
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import usage as schemas
from vsched_lib.model import executions

BLUEPRINT = flask.Blueprint('usage', __name__)

#: The columns of samples, and those of their sums. New ones go to the end.
SAMPLE = (
    'instance_uuid',
    'host',
    'at',
    'interval_us',
    'guest_us',
    'wait_us',
    'promised_us',
    'guest_mcpu',
    'promised_mcpu',
    'error_ppm',
    *usage_counts.WORK,
    *executions.COUNTS,
    *executions.FIGURES,
)
BUCKET = (
    'instance_uuid',
    'host',
    'at',
    'samples',
    'instances',
    'first_at',
    'last_at',
    'interval_us',
    'guest_us',
    'wait_us',
    'promised_us',
    'promised_guest_us',
    'guest_mcpu',
    'promised_mcpu',
    'error_ppm',
    *usage_counts.WORK,
    *executions.COUNTS,
    *executions.FIGURES,
)

#: Those of what the CPUs of a host did.
TIMES = (
    'cpu_us',
    'idle_us',
    'steal_us',
    'irq_us',
    'guest_us',
    'direct_us',
    'shared_us',
    'own_us',
)
HOST_SAMPLE = ('host', 'at', 'interval_us', 'cpus', *TIMES)
HOST_BUCKET = (
    'host',
    'at',
    'samples',
    'first_at',
    'last_at',
    'interval_us',
    *TIMES,
)

_COLUMNS = {
    # By the subject, and whether it is summed up.
    (usage.Subject.INSTANCES, False): SAMPLE,
    (usage.Subject.INSTANCES, True): BUCKET,
    (usage.Subject.HOSTS, False): HOST_SAMPLE,
    (usage.Subject.HOSTS, True): HOST_BUCKET,
}

_Found = usage.Sample | usage.Bucket | usage.HostSample

_TIMES = frozenset(('at', 'first_at', 'last_at'))


@BLUEPRINT.get('/v1/usage')
def index() -> flask.Response:
    """A page of samples or sums; ``sort_dir=desc`` starts with the newest."""
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
