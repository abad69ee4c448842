# SPDX-License-Identifier: Apache-2.0

"""Client of placement's API.

PlacementError
 +-- Conflict        the object was changed concurrently: read it again
 +-- InUse           allocations exist, so that it cannot be deleted
 +-- Rejected        placement rejected the request
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import typing as ty
import uuid as uuids

from keystoneauth1 import adapter as adapters
from keystoneauth1 import exceptions
import requests

from vsched_lib.openstack import paths
from vsched_lib.openstack import session

#: The lowest usable microversion: an inventory may be fully reserved from 1.26
#: on, and generations of consumers protect allocations from 1.28 on.
LOWEST = (1, 28)
#: The highest microversion that is used: a provider may be reparented.
HIGHEST = (1, 37)


class PlacementError(Exception):
    """A request to placement failed."""


class Conflict(PlacementError):
    """The object was changed concurrently: read it again."""


class InUse(PlacementError):
    """Allocations exist, so that the object cannot be deleted."""


class Rejected(PlacementError):
    """Placement rejected a request."""


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider.

    :param generation: of the provider; it increases with each change.
    :param parent_uuid: None at the root of a tree.
    """

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of one resource class of a provider."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 1
    step_size: int = 1
    allocation_ratio: float = 1.0

    @classmethod
    def of(cls, data: Mapping[str, ty.Any]) -> ty.Self:
        """Return the inventory from placement's JSON."""
        return cls(
            **{
                field.name: data[field.name]
                for field in dataclasses.fields(cls)
            }
        )


class Placement:
    """Client of one placement service.

    :param adapter: sends the requests.
    """

    def __init__(self, adapter: adapters.Adapter) -> None:
        self._adapter = adapter
        self._version: tuple[int, int] | None = None

    @property
    def version(self) -> tuple[int, int]:
        """Return the microversion for requests.

        :raises session.Unavailable: when the service does not respond.
        :raises Rejected: when it supports no usable microversion.
        """
        if self._version is None:
            answer = self._send('GET', '/', versioned=False)
            try:
                newest = answer.json()['versions'][0]['max_version']
                most = tuple(int(part) for part in newest.split('.'))
            except (ValueError, LookupError, TypeError):
                raise session.Unavailable(
                    '%s does not answer as placement does' % answer.url
                ) from None
            if most < LOWEST:
                raise Rejected(
                    'placement knows microversion %s at most; %d.%d is the '
                    'oldest that will do' % (newest, *LOWEST)
                )
            self._version = ty.cast(tuple[int, int], min(most, HIGHEST))
        return self._version

    @property
    def reparents(self) -> bool:
        """Return whether a provider can be reparented."""
        return self.version >= (1, 37)

    # Providers

    def provider(self, name: str) -> Provider | None:
        """Return the provider with a name; None when there is none."""
        found = self._get('/resource_providers', {'name': name})
        return next(map(_provider, found['resource_providers']), None)

    def create(self, name: str, parent_uuid: str) -> Provider:
        """Create a provider.

        :raises Conflict: when there is one with that name.
        """
        return _provider(
            self._send(
                'POST',
                '/resource_providers',
                {
                    'uuid': str(uuids.uuid4()),
                    'name': name,
                    'parent_provider_uuid': parent_uuid,
                },
            ).json()
        )

    def reparent(self, provider: Provider, parent_uuid: str) -> Provider:
        """Change the parent of a provider."""
        return _provider(
            self._send(
                'PUT',
                paths.of('resource_providers', provider.uuid),
                {'name': provider.name, 'parent_provider_uuid': parent_uuid},
            ).json()
        )

    def delete(self, provider: Provider) -> None:
        """Delete a provider, if it exists.

        :raises InUse: when it has allocations.
        """
        answer = self._send(
            'DELETE',
            paths.of('resource_providers', provider.uuid),
            fine=(404, 409),
        )
        if answer.status_code == 409:
            raise InUse(_detail(answer))

    # Inventories and traits. The generation in a write ensures that it is
    # based on the last read.

    def inventories(self, uuid: str) -> tuple[int, dict[str, Inventory]]:
        """Return a provider's generation, and its inventories by class."""
        found = self._get(paths.of('resource_providers', uuid, 'inventories'))
        return found['resource_provider_generation'], {
            name: Inventory.of(one)
            for name, one in found['inventories'].items()
        }

    def set_inventories(
        self, uuid: str, generation: int, inventories: Mapping[str, Inventory]
    ) -> int:
        """Replace a provider's inventories.

        :returns: the new generation.
        :raises Conflict: when the generation is not the newest.
        """
        return ty.cast(
            int,
            self._send(
                'PUT',
                paths.of('resource_providers', uuid, 'inventories'),
                {
                    'resource_provider_generation': generation,
                    'inventories': {
                        name: dataclasses.asdict(one)
                        for name, one in inventories.items()
                    },
                },
            ).json()['resource_provider_generation'],
        )

    def traits(self, uuid: str) -> tuple[int, frozenset[str]]:
        """Return a provider's generation, and its traits."""
        found = self._get(paths.of('resource_providers', uuid, 'traits'))
        return found['resource_provider_generation'], frozenset(
            found['traits']
        )

    def set_traits(
        self, uuid: str, generation: int, traits: Iterable[str]
    ) -> int:
        """Replace a provider's traits.

        :returns: the new generation.
        :raises Conflict: when the generation is not the newest.
        """
        return ty.cast(
            int,
            self._send(
                'PUT',
                paths.of('resource_providers', uuid, 'traits'),
                {
                    'resource_provider_generation': generation,
                    'traits': sorted(traits),
                },
            ).json()['resource_provider_generation'],
        )

    def ensure_class(self, name: str) -> None:
        """Create a resource class unless it exists."""
        self._send('PUT', paths.of('resource_classes', name))

    def ensure_trait(self, name: str) -> None:
        """Create a trait unless it exists."""
        self._send('PUT', paths.of('traits', name))

    # Allocations

    def claims(self, uuid: str, resource_class: str) -> dict[str, int]:
        """Return the allocation of each consumer from a provider."""
        found = self._get(paths.of('resource_providers', uuid, 'allocations'))
        return {
            consumer: one['resources'][resource_class]
            for consumer, one in found['allocations'].items()
            if resource_class in one['resources']
        }

    def withdraw(self, consumer: str, provider_uuid: str) -> None:
        """Delete a consumer's allocation from one provider, and no others.

        :raises Conflict: when its allocations were changed concurrently.
        """
        found = self._get(paths.of('allocations', consumer))
        kept = {
            uuid: {'resources': one['resources']}
            for uuid, one in found['allocations'].items()
            if uuid != provider_uuid
        }
        if len(kept) == len(found['allocations']):
            return
        self._send(
            'PUT',
            paths.of('allocations', consumer),
            {
                'allocations': kept,
                'project_id': found['project_id'],
                'user_id': found['user_id'],
                'consumer_generation': found['consumer_generation'],
            },
        )

    # Requests

    def _get(
        self, path: str, params: Mapping[str, str] | None = None
    ) -> dict[str, ty.Any]:
        return ty.cast(
            dict[str, ty.Any], self._send('GET', path, params=params).json()
        )

    def _send(
        self,
        method: str,
        path: str,
        body: ty.Any = None,
        params: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (),
        versioned: bool = True,
    ) -> requests.Response:
        headers = {'Accept': 'application/json'}
        if versioned:
            headers['OpenStack-API-Version'] = 'placement %d.%d' % (
                self.version
            )
        more: dict[str, ty.Any] = {}
        if body is not None:
            more['json'] = body
        if params is not None:
            more['params'] = params
        try:
            answer = self._adapter.request(
                path, method, headers=headers, raise_exc=False, **more
            )
        except exceptions.ClientException as problem:
            raise session.Unavailable(
                'placement does not answer: %s' % problem
            ) from None
        if answer.status_code < 400 or answer.status_code in fine:
            return answer
        text = '%s %s: %d %s' % (
            method,
            path,
            answer.status_code,
            _detail(answer),
        )
        if answer.status_code == 409:
            raise (InUse if _code(answer) == _IN_USE else Conflict)(text)
        if answer.status_code == 500 and _OVERTAKEN in text:
            # NOTE: placement 16 reports a conflict as an internal error when
            # traits are written.
            raise Conflict(text)
        if answer.status_code >= 500 or answer.status_code in (401, 403):
            raise session.Unavailable('placement rejects ' + text)
        raise Rejected('placement rejects ' + text)


_IN_USE = 'placement.inventory.inuse'
_OVERTAKEN = 'concurrently updated'


def _provider(data: Mapping[str, ty.Any]) -> Provider:
    return Provider(
        data['uuid'],
        data['name'],
        data['generation'],
        data['parent_provider_uuid'],
    )


def _error(answer: requests.Response) -> Mapping[str, ty.Any]:
    try:
        return ty.cast(Mapping[str, ty.Any], answer.json()['errors'][0])
    except (ValueError, LookupError, TypeError):
        return {}


def _code(answer: requests.Response) -> str:
    return str(_error(answer).get('code', ''))


def _detail(answer: requests.Response) -> str:
    text = str(_error(answer).get('detail') or answer.reason or '')
    return ' '.join(text.split())[:300]
