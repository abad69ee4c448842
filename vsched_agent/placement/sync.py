# SPDX-License-Identifier: Apache-2.0

"""Writes the desired state of this host's provider to placement."""

import dataclasses
import random
import time
import typing as ty

from vsched_agent.placement import inventory as desires
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement

#: How often a conflict is retried before it is a failure.
ATTEMPTS = 10
#: The longest pause before another attempt, in seconds.
PAUSE_S = 0.2


class NoCompute(Exception):
    """The compute node has no provider (yet)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What placement has after a synchronization.

    :param uuid: of the host's own provider.
    :param claimed_mcpu: by all instances together.
    :param changed: whether anything was written.
    """

    uuid: str
    inventory: placement.Inventory
    claimed_mcpu: int
    changed: bool

    @property
    def over_mcpu(self) -> int:
        """Return by how much the claims exceed the inventory."""
        return max(
            0,
            self.claimed_mcpu - self.inventory.total + self.inventory.reserved,
        )


def sync(
    client: placement.Placement,
    desired: desires.Desired,
    pause: ty.Callable[[float], ty.Any] = time.sleep,
) -> Outcome:
    """Compare placement with the desired state, and write what differs.

    Keeps no state between two calls: each one starts from what placement
    has.

    :param pause: waits for some seconds before another attempt.
    :raises NoCompute: when placement does not know the compute node.
    :raises placement.PlacementError: when placement rejects a request.
    :raises session.Unavailable: when placement cannot be reached.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _once(client, desired)
        except placement.Conflict:
            if attempt + 1 == ATTEMPTS:
                raise
            pause(random.uniform(0, PAUSE_S))
    raise AssertionError('unreachable')


def _once(client: placement.Placement, desired: desires.Desired) -> Outcome:
    root = client.provider(desired.compute_name)
    if root is None:
        raise NoCompute(
            'placement has no provider %s, which is the parent of this '
            "host's; nova-compute creates it, and [placement] compute_name "
            'must be what "openstack hypervisor list" shows'
            % desired.compute_name
        )
    own, changed = _own(client, desired, root)

    generation, found = client.inventories(own.uuid)
    claims = client.claims(own.uuid, names.RESOURCE_CLASS)
    inventory = desired.inventory(claims)
    wanted = {names.RESOURCE_CLASS: inventory}
    if found != wanted:
        client.ensure_class(names.RESOURCE_CLASS)
        client.set_inventories(own.uuid, generation, wanted)
        changed = True

    generation, traits = client.traits(own.uuid)
    if traits != desired.traits:
        for name in sorted(desired.traits - traits):
            client.ensure_trait(name)
        client.set_traits(own.uuid, generation, desired.traits)
        changed = True
    return Outcome(own.uuid, inventory, sum(claims.values()), changed)


def _own(
    client: placement.Placement,
    desired: desires.Desired,
    root: placement.Provider,
) -> tuple[placement.Provider, bool]:
    own = client.provider(desired.name)
    if own is not None and own.parent_uuid == root.uuid:
        return own, False
    if own is not None and client.reparents:
        # The host was reinstalled; the claims on its provider stay valid.
        return client.reparent(own, root.uuid), True
    if own is not None:
        client.delete(own)
    return client.create(desired.name, root.uuid), True


def remove(client: placement.Placement, compute_name: str) -> bool:
    """Delete this host's provider.

    :returns: whether there was one.
    :raises placement.InUse: when instances have claims on it.
    """
    own = client.provider(names.provider_name(compute_name))
    if own is None:
        return False
    client.delete(own)
    return True
