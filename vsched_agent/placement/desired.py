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

"""What this host's provider should look like, as a value."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement


def traits(backends: Iterable[str], certified: frozenset[str],
           balloon: bool = False) -> frozenset[str]:
    """What a host can do, as traits.

    :param backends: that it can use.
    :param certified: traits that its error profile earns.
    :param balloon: whether it takes vCPUs offline.
    """
    found = {names.backend_trait(name) for name in backends} | certified
    if balloon:
        found.add(names.BALLOON_TRAIT)
    return frozenset(found)


@dataclasses.dataclass(frozen=True, slots=True)
class Desired:
    """What placement should know of this host.

    :param compute_name: of the compute node's provider.
    :param capacity_mcpu: what reservations may use in total.
    :param reserve_mcpu: kept back for the host.
    :param traits: what the host can do.
    :param held_mcpu: by instance, what is in force there, margins and all.
    """

    compute_name: str
    capacity_mcpu: int
    reserve_mcpu: int = 0
    traits: frozenset[str] = frozenset()
    held_mcpu: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the host's own provider."""
        return names.provider_name(self.compute_name)

    def inventory(self, claims: Mapping[str, int]) -> placement.Inventory:
        """What there is for instances to claim.

        An instance may hold more than it claims: a margin for this host's
        errors, an operator's override, a reservation that Nova knows
        nothing of. The rest is reserved, so that it can't be claimed again.
        One that holds less, or is still being built, changes nothing.

        :param claims: what placement says that each instance has.
        """
        beyond = sum(max(0, held - claims.get(uuid, 0))
                     for uuid, held in self.held_mcpu.items())
        # Placement takes no total of 0.
        total = max(1, self.capacity_mcpu + self.reserve_mcpu)
        free = max(0, self.capacity_mcpu - beyond)
        return placement.Inventory(
            total=total, reserved=total - free,
            max_unit=max(1, self.capacity_mcpu))
