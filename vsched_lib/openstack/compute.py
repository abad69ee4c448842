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

"""Nova's API, as far as vsched uses it: flavors, and who is there."""

from collections.abc import Mapping
import dataclasses
import typing as ty

from keystoneauth1 import adapter as adapters
from keystoneauth1 import exceptions
import requests

from vsched_lib.openstack import session

#: The first microversion at which Nova validates extra specs; no other is
#: spoken, so that what Nova would refuse is refused.
MICROVERSION = '2.86'

#: Migrations that hold no claim any more.
_OVER = frozenset({'completed', 'done', 'confirmed', 'reverted', 'failed',
                   'error', 'cancelled'})

#: Flavors, or migrations, asked for at once.
_PAGE = 500


class Rejected(Exception):
    """Nova doesn't take it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor, as far as it concerns us."""

    id: str
    name: str
    vcpus: int
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Compute:
    """One Nova.

    :param adapter: what requests go through.
    """

    def __init__(self, adapter: adapters.Adapter) -> None:
        self._adapter = adapter

    def flavors(self) -> list[Flavor]:
        """All of them, private ones too."""
        found: list[Flavor] = []
        marker: dict[str, str] = {}
        while True:
            page = self._send('GET', '/flavors/detail', params={
                'is_public': 'None', 'limit': str(_PAGE), **marker},
            ).json()['flavors']
            found.extend(Flavor(
                one['id'], one['name'], one['vcpus'], one['extra_specs'])
                for one in page)
            if len(page) < _PAGE:
                return found
            marker = {'marker': page[-1]['id']}

    def set_extra_specs(self, flavor: Flavor,
                        extra_specs: Mapping[str, str]) -> None:
        """Add or replace some, all at once.

        :raises Rejected: when Nova doesn't take one of them.
        """
        self._send('POST', '/flavors/%s/os-extra_specs' % flavor.id,
                   {'extra_specs': dict(extra_specs)})

    def unset_extra_spec(self, flavor: Flavor, name: str) -> None:
        """Delete one; fine when it is gone."""
        self._send('DELETE', '/flavors/%s/os-extra_specs/%s' % (
            flavor.id, name), fine=(404,))

    def knows(self, consumer: str) -> bool:
        """Whether a claim is a server's, or that of one that moves.

        While a server moves, the claim on the host that it leaves is its
        migration's.
        """
        answer = self._send('GET', '/servers/' + consumer, fine=(404,))
        return answer.status_code != 404 or consumer in self._moving()

    def _moving(self) -> set[str]:
        found: set[str] = set()
        marker: dict[str, str] = {}
        while True:
            page = self._send('GET', '/os-migrations', params={
                'limit': str(_PAGE), **marker}).json()['migrations']
            found.update(one['uuid'] for one in page
                         if one['status'] not in _OVER)
            if len(page) < _PAGE:
                return found
            marker = {'marker': page[-1]['uuid']}

    def _send(self, method: str, path: str, body: ty.Any = None,
              params: Mapping[str, str] | None = None,
              fine: tuple[int, ...] = ()) -> requests.Response:
        more: dict[str, ty.Any] = {}
        if body is not None:
            more['json'] = body
        if params is not None:
            more['params'] = params
        try:
            answer = self._adapter.request(
                path, method, raise_exc=False, headers={
                    'Accept': 'application/json',
                    'OpenStack-API-Version': 'compute ' + MICROVERSION},
                **more)
        except exceptions.ClientException as problem:
            raise session.Unavailable(
                'nova does not answer: %s' % problem) from None
        if answer.status_code < 400 or answer.status_code in fine:
            return answer
        said = 'nova says to %s %s: %d %s' % (
            method, path, answer.status_code, _detail(answer))
        if answer.status_code >= 500 or answer.status_code in (
                401, 403, 406):
            raise session.Unavailable(said)
        raise Rejected(said)


def _detail(answer: requests.Response) -> str:
    try:
        # {"badRequest": {"code": 400, "message": "..."}}
        text = next(iter(answer.json().values()))['message']
    except (ValueError, LookupError, TypeError, AttributeError,
            StopIteration):
        text = answer.reason or ''
    return ' '.join(str(text).split())[:300]
