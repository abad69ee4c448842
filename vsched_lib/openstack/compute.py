# SPDX-License-Identifier: Apache-2.0

"""Client of Nova's API: flavors, servers, migrations and services."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime
import typing as ty

from keystoneauth1 import adapter as adapters
from keystoneauth1 import exceptions
import requests

from vsched_lib.openstack import paths
from vsched_lib.openstack import session

#: The first microversion at which Nova validates extra specs. Requests use
#: this one only, so that Nova rejects invalid extra specs.
MICROVERSION = '2.86'

#: States of migrations without an allocation.
_OVER = frozenset(
    {
        'completed',
        'done',
        'confirmed',
        'reverted',
        'failed',
        'error',
        'cancelled',
    }
)

#: States of servers that move from one host to another.
_MOVING = ('MIGRATING', 'RESIZE', 'VERIFY_RESIZE', 'REVERT_RESIZE')

#: Page size of lists of flavors and migrations.
_PAGE = 500


#: Prefix of Nova's policies for these requests.
_POLICY = 'os_compute_api:'
_SHOW_SPECS = 'os-flavor-extra-specs:index'
_SET_SPECS = 'os-flavor-extra-specs:create'
_UNSET_SPECS = 'os-flavor-extra-specs:delete'
_ALL_SERVERS = 'servers:detail:get_all_tenants'
_SERVER = 'servers:show'
_MIGRATIONS = 'os-migrations:index'
_SERVICES = 'os-services:list'
_HYPERVISORS = 'os-hypervisors:list-detail'
_SEE_HOSTS = 'os-extended-server-attributes'

#: Attributes of a server with its compute service and its hypervisor.
_HOST = 'OS-EXT-SRV-ATTR:host'
_NODE = 'OS-EXT-SRV-ATTR:hypervisor_hostname'


class Rejected(Exception):
    """Nova rejected a request."""


class Forbidden(session.Unavailable):
    """The user lacks a permission; the text names it."""

    def __init__(self, what: str, policy: str) -> None:
        super().__init__(
            'nova does not let the user %s: the user needs the role admin, '
            'or policy %s%s of Nova has to allow it' % (what, _POLICY, policy)
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """The attributes of a flavor that vsched uses."""

    id: str
    name: str
    vcpus: int
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Hypervisor:
    """A compute node.

    :param uuid: also of its resource provider.
    :param name: its hostname, which is the name of its provider.
    :param host: of its compute service.
    :param vcpus: how many CPUs it has for instances.
    """

    uuid: str
    name: str
    host: str
    vcpus: int


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """The attributes of a server that vsched uses.

    :param status: as in Nova's API, e.g. ``ACTIVE``.
    :param host: of the compute service; None for a server without a host.
    :param changed_at: by Nova's clock, in seconds since the epoch.
    :param extra_specs: of its flavor; None when Nova does not show them.
    """

    id: str
    status: str
    host: str | None
    changed_at: float
    vcpus: int
    extra_specs: Mapping[str, str] | None


class Compute:
    """Client of one Nova.

    :param adapter: sends the requests.
    """

    def __init__(self, adapter: adapters.Adapter) -> None:
        self._adapter = adapter

    def flavors(self) -> list[Flavor]:
        """Return all flavors, private ones included.

        :raises Forbidden: when Nova omits the extra specs, as it does without
            an error for users without the permission.
        """
        found = []
        for one in self._pages(
            '/flavors/detail', 'flavors', 'id', is_public='None'
        ):
            if 'extra_specs' not in one:
                raise Forbidden('see extra specs of flavors', _SHOW_SPECS)
            found.append(
                Flavor(
                    one['id'], one['name'], one['vcpus'], one['extra_specs']
                )
            )
        return found

    def servers(self, host: str) -> list[Server]:
        """Return all servers of a host, of all projects.

        :param host: of the compute service, or of the hypervisor.
        :raises Forbidden: when the user does not see all of them.
        """
        found: list[Server] = []
        for by, name in (('host', _HOST), ('node', _NODE)):
            for one in self._pages(
                '/servers/detail',
                'servers',
                'id',
                _ALL_SERVERS,
                all_tenants='1',
                **{by: host},
            ):
                # Nova ignores filters and omits attributes that the user has
                # no permission for.
                if name not in one:
                    raise Forbidden('see hosts of servers', _SEE_HOSTS)
                if one[name] == host:
                    found.append(_server(one))
            if found:
                break
        return found

    def set_extra_specs(
        self, flavor: Flavor, extra_specs: Mapping[str, str]
    ) -> None:
        """Add or replace extra specs of a flavor in one request.

        :raises Rejected: when Nova rejects one of them.
        """
        self._send(
            'POST',
            paths.of('flavors', flavor.id, 'os-extra_specs'),
            {'extra_specs': dict(extra_specs)},
            policy=_SET_SPECS,
        )

    def unset_extra_spec(self, flavor: Flavor, name: str) -> None:
        """Delete an extra spec of a flavor, if it exists."""
        self._send(
            'DELETE',
            paths.of('flavors', flavor.id, 'os-extra_specs', name),
            fine=(404,),
            policy=_UNSET_SPECS,
        )

    def has_service(self, host: str) -> bool:
        """Return whether there is a compute service on a host."""
        found = self._send(
            'GET',
            '/os-services',
            policy=_SERVICES,
            params={'binary': 'nova-compute', 'host': host},
        )
        return bool(found.json()['services'])

    def hypervisors(self) -> list[Hypervisor]:
        """Return all compute nodes."""
        return [
            Hypervisor(
                one['id'],
                one['hypervisor_hostname'],
                one['service']['host'],
                one['vcpus'],
            )
            for one in self._pages(
                '/os-hypervisors/detail', 'hypervisors', 'id', _HYPERVISORS
            )
        ]

    def moving(self) -> frozenset[str]:
        """Return the UUIDs of all servers that may be on two hosts.

        :raises Forbidden: when the user does not see all of them.
        """
        return frozenset(
            one['id']
            for status in _MOVING
            for one in self._pages(
                '/servers/detail',
                'servers',
                'id',
                _ALL_SERVERS,
                all_tenants='1',
                status=status,
            )
        )

    def knows(self, consumer: str) -> bool:
        """Return whether a consumer is a server or a migration in progress.

        During a migration the allocation on the source host belongs to the
        migration. Nova returns no server of another project if the user may
        not see those: call :meth:`servers` first, which checks that.
        """
        answer = self._send(
            'GET', paths.of('servers', consumer), fine=(404,), policy=_SERVER
        )
        return answer.status_code != 404 or any(
            one['uuid'] == consumer and one['status'] not in _OVER
            for one in self._pages(
                '/os-migrations', 'migrations', 'uuid', _MIGRATIONS
            )
        )

    def _pages(
        self,
        path: str,
        name: str,
        key: str,
        policy: str | None = None,
        **params: str,
    ) -> Iterator[dict[str, ty.Any]]:
        marker: dict[str, str] = {}
        while True:
            page = self._send(
                'GET',
                path,
                policy=policy,
                params={**params, 'limit': str(_PAGE), **marker},
            ).json()[name]
            yield from page
            if len(page) < _PAGE:
                return
            marker = {'marker': page[-1][key]}

    def _send(
        self,
        method: str,
        path: str,
        body: ty.Any = None,
        params: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (),
        policy: str | None = None,
    ) -> requests.Response:
        more: dict[str, ty.Any] = {}
        if body is not None:
            more['json'] = body
        if params is not None:
            more['params'] = params
        try:
            answer = self._adapter.request(
                path,
                method,
                raise_exc=False,
                headers={
                    'Accept': 'application/json',
                    'OpenStack-API-Version': 'compute ' + MICROVERSION,
                },
                **more,
            )
        except exceptions.ClientException as problem:
            raise session.Unavailable(
                'nova does not answer: %s' % problem
            ) from None
        if answer.status_code < 400 or answer.status_code in fine:
            return answer
        if answer.status_code == 403 and policy is not None:
            raise Forbidden('%s %s' % (method, path), policy)
        text = 'nova rejects %s %s: %d %s' % (
            method,
            path,
            answer.status_code,
            _detail(answer),
        )
        if answer.status_code >= 500 or answer.status_code in (401, 403, 406):
            raise session.Unavailable(text)
        raise Rejected(text)


def _server(one: Mapping[str, ty.Any]) -> Server:
    return Server(
        one['id'],
        one['status'],
        one.get(_HOST),
        datetime.datetime.fromisoformat(one['updated']).timestamp(),
        one['flavor']['vcpus'],
        one['flavor'].get('extra_specs'),
    )


def _detail(answer: requests.Response) -> str:
    try:
        # {"badRequest": {"code": 400, "message": "..."}}
        text = next(iter(answer.json().values()))['message']
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
        text = answer.reason or ''
    return ' '.join(str(text).split())[:300]
