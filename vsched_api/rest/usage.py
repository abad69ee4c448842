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

"""``/v1/usage``: how much CPU time instances got."""

from collections.abc import Mapping
from collections.abc import Sequence
import csv
import io
import typing as ty

import flask

from vsched_api.operations import usage
from vsched_api.policies import usage as policies
from vsched_api.rest import authorization
from vsched_api.rest import clock
from vsched_api.rest import pagination
from vsched_api.rest import services
from vsched_api.rest import validation
from vsched_api.schemas import usage as schemas

BLUEPRINT = flask.Blueprint('usage', __name__)

#: The columns of samples, and those of their sums.
SAMPLE = ('instance_uuid', 'host', 'at', 'interval_us', 'guest_us',
          'wait_us', 'promised_us', 'guest_mcpu', 'promised_mcpu',
          'error_ppm')
BUCKET = ('instance_uuid', 'host', 'at', 'samples', 'instances', 'first_at',
          'last_at', 'interval_us', 'guest_us', 'wait_us', 'promised_us',
          'promised_guest_us', 'guest_mcpu', 'promised_mcpu', 'error_ppm')

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
    names: Sequence[str] = (
        SAMPLE if resolution is usage.Resolution.RAW else BUCKET)
    found = _found(resolution, size + 1, newest_first, query)
    page, links = pagination.split(found, size, _number)
    views = [_view(one, names) for one in page]
    if as_csv:
        answer = flask.Response(
            _csv(views, names), mimetype='text/csv', headers={
                'Link': ', '.join('<%(href)s>; rel="%(rel)s"' % link
                                  for link in links)})
    else:
        answer = flask.jsonify({'usage': views, 'links': links})
    answer.vary.add('Accept')
    return answer


def _found(resolution: usage.Resolution, limit: int, newest_first: bool,
           query: Mapping[str, ty.Any],
           ) -> Sequence[usage.Sample | usage.Bucket]:
    database = services.current().database
    if resolution is usage.Resolution.RAW:
        return usage.page(
            database, limit, newest_first=newest_first, **query)
    return usage.buckets(
        database, resolution, limit, newest_first=newest_first, **query)


def _number(one: usage.Sample | usage.Bucket) -> int:
    return one.number


def _wants_csv(form: str | None) -> bool:
    if form is not None:
        return form == 'csv'
    return flask.request.accept_mimetypes.best_match(
        ('application/json', 'text/csv')) == 'text/csv'


def _view(one: usage.Sample | usage.Bucket,
          names: Sequence[str]) -> dict[str, ty.Any]:
    return {name: clock.iso(value) if name in _TIMES else value
            for name in names for value in (getattr(one, name),)}


def _csv(views: Sequence[Mapping[str, ty.Any]],
         names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator='\n')
    writer.writeheader()
    writer.writerows(views)
    return text.getvalue()
