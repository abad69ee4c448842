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

"""Pages of lists, and the links between them.

A list has an order that does not depend on when it is asked for, and the
marker is an item's own name in that order, so that items that come or go
between two pages neither repeat nor hide others.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty
import urllib.parse

import flask

from vsched_api.rest import services

T = ty.TypeVar('T')

Links = list[dict[str, str]]


def limit(query: Mapping[str, ty.Any]) -> int:
    """How many items the page may hold."""
    highest = services.current().conf.api.max_limit
    return min(query.get('limit', highest), highest)


def split(items: Sequence[T], size: int,
          marker: Callable[[T], ty.Any]) -> tuple[Sequence[T], Links]:
    """The page, and its links.

    :param items: one more than ``size`` when there is a next page.
    :param marker: what names an item in a query.
    """
    links = [{'rel': 'self', 'href': href(
        flask.request.path, flask.request.query_string.decode('latin-1'))}]
    page = items[:size]
    if len(items) > size:
        pairs = [(name, text)
                 for name, texts in flask.request.args.lists()
                 for text in texts if name != 'marker']
        pairs.append(('marker', str(marker(page[-1]))))
        links.append({'rel': 'next', 'href': href(
            flask.request.path, urllib.parse.urlencode(pairs))})
    return page, links


def href(path: str, query: str = '') -> str:
    """A link into this API."""
    start = services.current().conf.api.public_endpoint
    if start is None:
        start = flask.request.root_url
    return start.rstrip('/') + urllib.parse.quote(path) + (
        '?' + query if query else '')


def self_link(*parts: str) -> Links:
    """The link of one item."""
    return [{'rel': 'self', 'href': href('/v1/' + '/'.join(parts))}]
