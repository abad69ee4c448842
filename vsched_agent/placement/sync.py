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

"""Makes placement look as it should."""

import dataclasses
import random
import time
import typing as ty

from vsched_agent.placement import desired as desires
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement

#: How often somebody else may come first before it is called a failure.
ATTEMPTS = 10
#: The longest pause before another attempt, in seconds.
PAUSE_S = 0.2


class NoCompute(Exception):
    """The compute node has no provider (yet)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What placement holds now.

    :param uuid: of our provider.
    :param claimed_mcpu: by all instances together.
    :param changed: whether anything had to be.
    """

    uuid: str
    inventory: placement.Inventory
    claimed_mcpu: int
    changed: bool

    @property
    def over_mcpu(self) -> int:
        """By how much more is claimed than there is."""
        return max(0, self.claimed_mcpu - self.inventory.total +
                   self.inventory.reserved)


def sync(client: placement.Placement, desired: desires.Desired,
         pause: ty.Callable[[float], ty.Any] = time.sleep) -> Outcome:
    """Compare, and write what differs.

    Whatever state placement is in, the next call mends it: there is nothing
    to remember between two calls.

    :param pause: waits for some seconds before another attempt.
    :raises NoCompute: when the compute node isn't known there.
    :raises placement.PlacementError: when placement doesn't take it.
    :raises session.Unavailable: when there is no placement to talk to.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _once(client, desired)
        except placement.Conflict:
            if attempt + 1 == ATTEMPTS:
                raise
            pause(random.uniform(0, PAUSE_S))
    raise AssertionError('unreachable')


def _once(client: placement.Placement,
          desired: desires.Desired) -> Outcome:
    root = client.provider(desired.compute_name)
    if root is None:
        raise NoCompute(
            'placement has no provider %s, and so no place for this host\'s '
            'capacity; nova-compute makes it, and [placement] compute_name '
            'must be what "openstack hypervisor list" shows'
            % desired.compute_name)
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


def _own(client: placement.Placement, desired: desires.Desired,
         root: placement.Provider) -> tuple[placement.Provider, bool]:
    own = client.provider(desired.name)
    if own is not None and own.parent_uuid == root.uuid:
        return own, False
    if own is not None and client.reparents:
        # The host was installed anew; the claims on it are still claims.
        return client.reparent(own, root.uuid), True
    if own is not None:
        client.delete(own)
    return client.create(desired.name, root.uuid), True


def remove(client: placement.Placement, compute_name: str) -> bool:
    """Take this host's provider away.

    :returns: whether there was one.
    :raises placement.InUse: when instances have claims on it.
    """
    own = client.provider(names.provider_name(compute_name))
    if own is None:
        return False
    client.delete(own)
    return True
