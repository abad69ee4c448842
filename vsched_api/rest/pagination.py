# SPDX-License-Identifier: Apache-2.0

"""Pages of lists, and the links between them.

A list has an order that does not depend on when it is asked for, and the
marker is an item's own name in that order, so that items that come or go
between two pages neither repeat nor hide others.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import re
import typing as ty
import urllib.parse

import flask

from vsched_api.rest import services

T = ty.TypeVar('T')

Links = list[dict[str, str]]

# A Host header: a name or an address, and perhaps a port.
_HOST = re.compile(
    r'(?:\[(?P<v6>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9.-]{1,253}))'
    r'(?::[0-9]{1,5})?\Z',
    re.ASCII | re.IGNORECASE,
)


def limit(query: Mapping[str, ty.Any]) -> int:
    """How many items the page may hold."""
    highest: int = services.current().conf.api.max_limit
    asked: int = query.get('limit', highest)
    return min(asked, highest)


def split(
    items: Sequence[T], size: int, marker: Callable[[T], ty.Any]
) -> tuple[Sequence[T], Links]:
    """The page, and its links.

    :param items: one more than ``size`` when there is a next page.
    :param marker: what names an item in a query.
    """
    links = [
        {
            'rel': 'self',
            'href': href(
                flask.request.path,
                flask.request.query_string.decode('latin-1'),
            ),
        }
    ]
    page = items[:size]
    if len(items) > size:
        pairs = [
            (name, text)
            for name, texts in flask.request.args.lists()
            for text in texts
            if name != 'marker'
        ]
        pairs.append(('marker', str(marker(page[-1]))))
        links.append(
            {
                'rel': 'next',
                'href': href(
                    flask.request.path, urllib.parse.urlencode(pairs)
                ),
            }
        )
    return page, links


def href(path: str, query: str = '') -> str:
    """A link into this API: a URL, or a path where the host is unknown."""
    return (
        _start().rstrip('/')
        + urllib.parse.quote(path)
        + ('?' + query if query else '')
    )


def _start() -> str:
    # A list has a link for each row.
    if 'vsched_link_start' not in flask.g:
        flask.g.vsched_link_start = _find_start()
    return ty.cast(str, flask.g.vsched_link_start)


def _find_start() -> str:
    own = services.current()
    if own.conf.api.public_endpoint is not None:
        return ty.cast(str, own.conf.api.public_endpoint)
    request = flask.request
    # Whoever sends a request chooses its Host header, and caches and clients
    # would follow it.
    if _proxied(own.conf) or _trusted(
        request.host, own.conf.api.trusted_hosts
    ):
        return request.root_url
    return request.root_path


def _proxied(conf: ty.Any) -> bool:
    return (
        conf.oslo_middleware.enable_proxy_headers_parsing
        and 'HTTP_X_FORWARDED_HOST' in flask.request.environ
    )


def _trusted(host: str, trusted: Sequence[str]) -> bool:
    found = _HOST.match(host)
    if found is None:
        return False
    name = (found['v6'] or found['name']).lower()
    return any(
        name == one.lower()
        or (one.startswith('.') and name.endswith(one.lower()))
        for one in trusted
    )


def self_link(*parts: str) -> Links:
    """The link of one item."""
    return [{'rel': 'self', 'href': href('/v1/' + '/'.join(parts))}]
