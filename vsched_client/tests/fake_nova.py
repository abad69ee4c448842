# SPDX-License-Identifier: Apache-2.0

"""Flavors of a Nova that is not there, in the process or over HTTP."""

import json
import typing as ty
import urllib.parse

import requests

_POLICY_ERROR = {'forbidden': {'code': 403, 'message': 'Policy forbids.'}}
_PATH = ('flavors', 'os-extra_specs')
_REASONS = {200: 'OK', 403: 'Forbidden', 404: 'Not Found'}


class FakeNova:
    """Answers requests about flavors; may be given to ``shell.run``.

    :ivar requests: method, path, microversion and token of each request.
    :ivar specs: extra specs by the name of a flavor, which is its ID too.
    :ivar forbidden: methods that the user has no permission for.
    """

    def __init__(self, **specs: dict[str, str]) -> None:
        self.requests: list[tuple[str, str, str | None, str | None]] = []
        self.specs = specs
        self.forbidden: set[str] = set()

    def request(
        self, path: str, method: str, **options: ty.Any
    ) -> requests.Response:
        """Answer a request of an adapter of keystoneauth1."""
        self.requests.append((method, path, options['microversion'], None))
        status, body = self._answer(
            method, path, options.get('params', {}), options.get('json')
        )
        answer = requests.Response()
        answer.status_code = status
        answer.reason = _REASONS[status]
        answer._content = json.dumps(body).encode()
        return answer

    def __call__(self, environ: ty.Any, start_response: ty.Any) -> ty.Any:
        """Answer a request of HTTP."""
        method = environ['REQUEST_METHOD']
        path = urllib.parse.unquote(environ['PATH_INFO']).removeprefix('/v2.1')
        if path in ('', '/'):
            status, body = 200, _version(environ)
        else:
            self.requests.append(
                (
                    method,
                    path,
                    environ.get('HTTP_OPENSTACK_API_VERSION'),
                    environ.get('HTTP_X_AUTH_TOKEN'),
                )
            )
            text = environ['wsgi.input'].read(
                int(environ.get('CONTENT_LENGTH') or 0)
            )
            status, body = self._answer(
                method,
                path,
                dict(urllib.parse.parse_qsl(environ.get('QUERY_STRING', ''))),
                json.loads(text) if text else None,
            )
        start_response(
            '%d %s' % (status, _REASONS[status]),
            [('Content-Type', 'application/json')],
        )
        return [json.dumps(body).encode()]

    def _answer(
        self, method: str, path: str, query: ty.Any, body: ty.Any
    ) -> tuple[int, ty.Any]:
        if method in self.forbidden:
            return 403, _POLICY_ERROR
        words = [urllib.parse.unquote(one) for one in path.split('/')[1:]]
        if words == ['flavors', 'detail'] and method == 'GET':
            return 200, {'flavors': self._page(query)}
        if (words[0], words[2]) != _PATH or words[1] not in self.specs:
            return 404, {'itemNotFound': {'code': 404, 'message': path}}
        specs = self.specs[words[1]]
        if method == 'POST':
            specs.update(body['extra_specs'])
        else:
            del specs[words[3]]
        return 200, {}

    def _page(self, query: ty.Any) -> list[dict[str, ty.Any]]:
        names = sorted(self.specs)
        if 'marker' in query:
            names = names[names.index(query['marker']) + 1 :]
        return [
            {'id': name, 'name': name, 'vcpus': 2}
            | (
                {}
                if 'extra_specs' in self.forbidden
                else {'extra_specs': self.specs[name]}
            )
            for name in names[: int(query['limit'])]
        ]


def _version(environ: ty.Any) -> dict[str, ty.Any]:
    return {
        'version': {
            'id': 'v2.1',
            'status': 'CURRENT',
            'version': '2.96',
            'min_version': '2.1',
            'links': [
                {
                    'rel': 'self',
                    'href': 'http://%s/v2.1/' % environ['HTTP_HOST'],
                }
            ],
        }
    }
