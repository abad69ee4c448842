# SPDX-License-Identifier: Apache-2.0

"""The desired state of this host's resource provider, as a value."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement


def traits(
    backends: Iterable[str], certified: frozenset[str], balloon: bool = False
) -> frozenset[str]:
    """Return the traits of a host.

    :param backends: usable ones.
    :param certified: traits from the host's error profile.
    :param balloon: whether ballooning is in use.
    """
    found = {names.backend_trait(name) for name in backends} | certified
    if balloon:
        found.add(names.BALLOON_TRAIT)
    return frozenset(found)


@dataclasses.dataclass(frozen=True, slots=True)
class Desired:
    """The desired inventory and traits of this host.

    :param compute_name: name of the compute node's provider.
    :param capacity_mcpu: what reservations may use in total.
    :param reserve_mcpu: kept back for the host.
    :param held_mcpu: what is in force for each instance, with margins.
    """

    compute_name: str
    capacity_mcpu: int
    reserve_mcpu: int = 0
    traits: frozenset[str] = frozenset()
    held_mcpu: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name of the host's own provider."""
        return names.provider_name(self.compute_name)

    def inventory(self, claims: Mapping[str, int]) -> placement.Inventory:
        """Return the inventory that instances can claim from.

        An instance may have more in force than it claims: a margin for this
        host's errors, an operator's override, a reservation unknown to
        Nova. The difference is reserved, so that it cannot be claimed
        again. Less than the claim, as while it is built, changes nothing.

        :param claims: the allocation of each instance in placement.
        """
        beyond = sum(
            max(0, held - claims.get(uuid, 0))
            for uuid, held in self.held_mcpu.items()
        )
        # Placement rejects a total of 0.
        total = max(1, self.capacity_mcpu + self.reserve_mcpu)
        free = max(0, self.capacity_mcpu - beyond)
        return placement.Inventory(
            total=total,
            reserved=total - free,
            max_unit=max(1, self.capacity_mcpu),
        )
