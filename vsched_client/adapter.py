# SPDX-License-Identifier: Apache-2.0

"""Sends requests to the API: versions, errors, pages and repetitions."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import time
import typing as ty
import urllib.parse

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
import requests

from vsched_client import errors

SERVICE_TYPE = 'vsched'
#: The version of the API that requests ask for by default.
MICROVERSION = '1.0'

#: A request is given up after so long without a byte, in seconds.
TIMEOUT_S = 60
#: How often a request is repeated that the service could not answer.
RETRIES = 4
#: The longest delay before a repetition, whatever the service asks for.
MAX_DELAY_S = 10.0
_FIRST_DELAY_S = 0.5

#: With these codes the service has not begun with a request, so that even a
#: change may be repeated.
_NOT_BEGUN = frozenset(
    {'vsched.identity.unavailable', 'vsched.request.too_many_waiting'}
)

Query = Mapping[str, ty.Any]
Object = dict[str, ty.Any]


class Adapter(adapter.Adapter):
    """A session with one vsched API.

    :param session: of keystoneauth1; without keystone its authentication is
        ``keystoneauth1.noauth.NoAuth``, which has the endpoint.
    :param retries: how often a request is repeated after a 503.
    :param max_delay_s: longest delay before a repetition.
    :param sleep: waits for seconds.
    :param options: of ``keystoneauth1.adapter.Adapter``.
    """

    client_name = 'vsched-client'

    def __init__(
        self,
        session: ty.Any,
        *,
        retries: int = RETRIES,
        max_delay_s: float = MAX_DELAY_S,
        sleep: Callable[[float], None] = time.sleep,
        **options: ty.Any,
    ) -> None:
        options.setdefault('service_type', SERVICE_TYPE)
        options.setdefault('default_microversion', MICROVERSION)
        super().__init__(session, **options)
        self._retries = retries
        self._max_delay_s = max_delay_s
        self._sleep = sleep

    def call(
        self,
        method: str,
        *segments: str,
        body: Object | None = None,
        query: Query | None = None,
    ) -> Object:
        """Send a request and return the decoded body of its answer.

        :param segments: of the path below ``/v1``.
        :param query: None values are left out; lists are given repeatedly.
        :returns: empty when the answer has no body.
        :raises errors.ApiError: when the API answers with errors.
        :raises errors.ClientError: when there is no such answer.
        """
        answer = self.send(method, *segments, body=body, query=query)
        if not answer.content:
            return {}
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise errors.MalformedAnswer(
                'the answer to %s %s is no JSON object: is the endpoint that '
                'of vsched?' % (method, _path(segments))
            )
        return found

    def one(
        self, name: str, method: str, *segments: str, **more: ty.Any
    ) -> Object:
        """Return one object of the answer to a request.

        :param name: its key in the body.
        :param more: as for :meth:`call`.
        """
        answer = self.call(method, *segments, **more)
        found = answer.get(name)
        if not isinstance(found, dict):
            raise errors.MalformedAnswer(
                'the answer to %s %s has no %s'
                % (method, _path(segments), name)
            )
        return found

    def pages(
        self,
        name: str,
        *segments: str,
        query: Query | None = None,
        limit: int | None = None,
    ) -> Iterator[Object]:
        """Iterate over a list, page by page.

        :param name: the key of the list in each page.
        :param limit: the most items to return; None for all.
        """
        left = limit
        for page in self.answers(name, *segments, query=query, limit=limit):
            items = page[name]
            yield from items[:left]
            if not items:
                return
            if left is not None:
                left -= len(items)

    def answers(
        self,
        name: str,
        *segments: str,
        query: Query | None = None,
        limit: int | None = None,
    ) -> Iterator[Object]:
        """Iterate over the pages of a list, each with all that it has.

        :param name: the key of the list in each page.
        :param limit: the most items that are asked for; None for all.
        """
        left = limit
        parameters = dict(query or {})
        while left is None or left > 0:
            if left is not None:
                parameters['limit'] = left
            page = self.call('GET', *segments, query=parameters)
            items = page.get(name)
            if not isinstance(items, list):
                raise errors.MalformedAnswer(
                    'the answer to GET %s has no list %s'
                    % (_path(segments), name)
                )
            yield page
            marker = _next_marker(page)
            if marker is None:
                return
            if marker == parameters.get('marker'):
                raise errors.MalformedAnswer(
                    'the page of GET %s after %s leads to itself'
                    % (_path(segments), marker)
                )
            parameters['marker'] = marker
            if left is not None:
                left -= len(items)

    def send(
        self,
        method: str,
        *segments: str,
        body: Object | None = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send a request and return its answer, as :meth:`call` does."""
        path = _path(segments)
        delay_s = _FIRST_DELAY_S
        for left in range(self._retries, -1, -1):
            answer = self._try(method, path, body, query, headers)
            if answer.status_code < 400:
                return answer
            error = errors.from_response(answer)
            if not left or not _repeatable(method, error):
                raise error
            self._sleep(min(_delay_s(answer, delay_s), self._max_delay_s))
            delay_s *= 2
        raise AssertionError('unreachable')

    def _try(
        self,
        method: str,
        path: str,
        body: Object | None,
        query: Query | None,
        headers: Mapping[str, str] | None,
    ) -> requests.Response:
        options: dict[str, ty.Any] = {'timeout': TIMEOUT_S}
        if body is not None:
            options['json'] = body
        if query:
            options['params'] = {
                name: _parameter(value)
                for name, value in query.items()
                if value is not None
            }
        try:
            return self.request(
                path,
                method,
                raise_exc=False,
                headers={'Accept': 'application/json', **(headers or {})},
                **options,
            )
        except exceptions.EndpointNotFound:
            raise errors.NoAnswer(
                'there is no endpoint of service type %s, neither in the '
                'catalogue of keystone nor in the options' % self.service_type
            ) from None
        except exceptions.ClientException as problem:
            raise errors.NoAnswer(
                '%s %s: %s' % (method, path, problem)
            ) from problem


def _path(segments: ty.Iterable[str]) -> str:
    for text in segments:
        if text in ('', '.', '..'):
            raise errors.ClientError(
                '%r cannot be a part of a path; accepted: a name or a UUID'
                % text
            )
    return '/v1/' + '/'.join(
        urllib.parse.quote(text, safe=':') for text in segments
    )


def _parameter(value: ty.Any) -> ty.Any:
    return str(value).lower() if isinstance(value, bool) else value


def _next_marker(page: Object) -> str | None:
    """Return the marker of the next page.

    The rest of the link is not followed: behind a proxy the service may
    know itself by another address, and a token goes to the endpoint only.
    """
    links = page.get('links')
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict) and link.get('rel') == 'next':
            query = urllib.parse.urlsplit(str(link.get('href'))).query
            found = urllib.parse.parse_qs(query).get('marker')
            return found[-1] if found else None
    return None


def _repeatable(method: str, error: errors.ApiError) -> bool:
    return isinstance(error, errors.Unavailable) and (
        method == 'GET' or error.code in _NOT_BEGUN
    )


def _delay_s(answer: requests.Response, default_s: float) -> float:
    try:
        return max(0.0, float(answer.headers['Retry-After']))
    except (KeyError, ValueError):
        return default_s
