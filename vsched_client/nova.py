# SPDX-License-Identifier: Apache-2.0

"""Requests to Nova about flavors, with the token of the session."""

from collections.abc import Iterator
from collections.abc import Mapping
import typing as ty
import urllib.parse

from keystoneauth1 import exceptions
import requests

from vsched_client import errors

#: The first microversion at which Nova validates extra specs. Requests use
#: this one only, so that Nova rejects invalid extra specs.
MICROVERSION = '2.86'

#: Page size of the list of flavors.
_PAGE = 500
#: The longest text of an answer that is shown, in characters.
_MAX_CHARS = 300

_POLICY = 'os_compute_api:os-flavor-extra-specs:'


class Flavor(ty.NamedTuple):
    """The attributes of a flavor that vsched uses."""

    id: str
    name: str
    vcpus: int
    extra_specs: Mapping[str, str]


class Nova:
    """Client of one Nova.

    :param compute: an adapter of keystoneauth1 for its endpoint, such as the
        compute proxy of openstacksdk.
    """

    def __init__(self, compute: ty.Any) -> None:
        self._compute = compute

    def flavors(self) -> list[Flavor]:
        """Return all flavors that the user sees, sorted by their names.

        :raises errors.NovaError: when Nova omits the extra specs, as it does
            without an error for users without the permission.
        """
        return sorted(self._flavors(), key=lambda one: one.name)

    def flavor(self, name: str) -> Flavor:
        """Return one flavor.

        :param name: its ID or its name.
        :raises errors.NovaError: when there is none.
        """
        return chosen(self.flavors(), name)

    def set_extra_specs(
        self, flavor: Flavor, extra_specs: Mapping[str, str]
    ) -> None:
        """Add or replace extra specs of a flavor in one request."""
        self._send(
            'POST',
            _path(flavor.id),
            policy='create',
            json={'extra_specs': dict(extra_specs)},
        )

    def unset_extra_spec(self, flavor: Flavor, name: str) -> None:
        """Delete an extra spec of a flavor, if it exists."""
        self._send(
            'DELETE', _path(flavor.id, name), policy='delete', fine=(404,)
        )

    def _flavors(self) -> Iterator[Flavor]:
        marker: dict[str, str] = {}
        while True:
            answer = self._send(
                'GET',
                '/flavors/detail',
                # Private ones as well.
                params={'is_public': 'None', 'limit': str(_PAGE), **marker},
            )
            try:
                page = answer.json()['flavors']
                for one in page:
                    if 'extra_specs' not in one:
                        raise errors.NovaError(
                            'nova does not let the user see extra specs of '
                            'flavors: its policy %sindex has to allow it'
                            % _POLICY
                        )
                    yield Flavor(
                        str(one['id']),
                        str(one['name']),
                        int(one['vcpus']),
                        dict(one['extra_specs']),
                    )
            except (ValueError, LookupError, TypeError):
                raise errors.NovaError(
                    'the answer to GET /flavors/detail has no flavors: is '
                    'the endpoint that of nova?'
                ) from None
            if len(page) < _PAGE or marker.get('marker') == page[-1]['id']:
                return
            marker = {'marker': page[-1]['id']}

    def _send(
        self,
        method: str,
        path: str,
        policy: str | None = None,
        fine: tuple[int, ...] = (),
        **options: ty.Any,
    ) -> requests.Response:
        try:
            answer = self._compute.request(
                path,
                method,
                raise_exc=False,
                microversion=MICROVERSION,
                headers={'Accept': 'application/json'},
                **options,
            )
        except exceptions.ClientException as problem:
            raise errors.NovaError(
                'nova does not answer: %s' % problem
            ) from problem
        if answer.status_code < 400 or answer.status_code in fine:
            return ty.cast(requests.Response, answer)
        if answer.status_code == 403 and policy is not None:
            raise errors.NovaError(
                'nova does not let the user %s %s: its policy %s%s has to '
                'allow it' % (method, path, _POLICY, policy)
            )
        raise errors.NovaError(
            'nova rejects %s %s: %s (HTTP %d)'
            % (method, path, _detail(answer), answer.status_code)
        )


def chosen(flavors: ty.Iterable[Flavor], name: str) -> Flavor:
    """Return the flavor with an ID, or else the one with a name.

    :raises errors.NovaError: when there is none.
    """
    found = list(flavors)
    for attribute in ('id', 'name'):
        for one in found:
            if getattr(one, attribute) == name:
                return one
    raise errors.NovaError(
        'there is no flavor %s, or the user does not see it' % name[:255]
    )


def _path(*segments: str) -> str:
    flavor_id, *rest = (
        urllib.parse.quote(text, safe=':') for text in segments
    )
    return '/'.join(('/flavors', flavor_id, 'os-extra_specs', *rest))


def _detail(answer: requests.Response) -> str:
    try:
        # {"badRequest": {"code": 400, "message": "..."}}
        text = next(iter(answer.json().values()))['message']
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
        text = answer.reason or 'no reason given'
    return ' '.join(str(text).split())[:_MAX_CHARS]
