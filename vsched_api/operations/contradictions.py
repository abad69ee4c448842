# SPDX-License-Identifier: Apache-2.0

"""What Nova and placement say about the reports of a host.

A report names nothing by which Nova and placement are queried except the name
of the host, which its key proves.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_lib.contract import errors
from vsched_lib.contract import placement as names
from vsched_lib.model import reservation
from vsched_lib.openstack import compute
from vsched_lib.openstack import placement

#: Resource classes of CPUs, in the inventory of a compute node.
_CPUS = ('VCPU', 'PCPU')

#: How many instances a detail names.
_MAX_NAMED = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Reported:
    """What a host has reported.

    :param capacity_mcpu: as reported, without the bound.
    :param provider_uuid: its provider in placement, if it named one.
    :param instances: those that it has listed for a while.
    :param cpus: the result of the last comparison.
    """

    host: str
    capacity_mcpu: int
    provider_uuid: str | None
    instances: frozenset[str]
    cpus: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Contradiction:
    """One contradiction, as an event shows it."""

    code: errors.Code
    detail: str
    figures: dict[str, ty.Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The result of one comparison.

    :param cpus: how many CPUs the compute node has for instances; None when
        neither Nova nor placement has.
    :param foreign: instances that Nova does not have on the host.
    """

    cpus: int | None
    contradictions: Sequence[Contradiction]
    foreign: frozenset[str]


class Reference:
    """Nova and placement, as read for one round of comparisons.

    :param nova: None when it is not configured.
    :param claims: placement's client; None when it is not configured.
    :param hypervisors: of Nova.
    :param moving: servers that may be on two hosts.
    """

    def __init__(
        self,
        nova: compute.Compute | None,
        claims: placement.Placement | None,
        hypervisors: Sequence[compute.Hypervisor],
        moving: frozenset[str],
    ) -> None:
        self._nova = nova
        self._claims = claims
        self._hypervisors = hypervisors
        self._moving = moving

    @classmethod
    def of(
        cls, nova: compute.Compute | None, claims: placement.Placement | None
    ) -> ty.Self:
        """Read what is needed for all hosts.

        :raises compute.Rejected: when Nova rejects a request.
        :raises placement.PlacementError: when placement does.
        :raises openstack.session.Unavailable: when one of them does not
            respond, or Nova does not let the user see all of it.
        """
        if claims is not None:
            # Only to see whether it responds: no provider has the name.
            claims.provider(names.RESOURCE_CLASS)
        if nova is None:
            return cls(None, claims, (), frozenset())
        return cls(nova, claims, nova.hypervisors(), nova.moving())

    def compare(self, reported: Reported) -> Found:
        """Compare what one host has reported.

        :raises compute.Rejected: when Nova rejects a request.
        :raises placement.PlacementError: when placement does.
        :raises openstack.session.Unavailable: when one of them does not
            respond.
        """
        nodes = [
            one
            for one in self._hypervisors
            if reported.host in (one.host, one.name)
        ]
        found = []
        if (
            self._nova is not None
            and not nodes
            and not self._nova.has_service(reported.host)
        ):
            found.append(
                Contradiction(
                    errors.Code.HOST_NOT_IN_NOVA,
                    'an agent reports as this host, and Nova has neither a '
                    'compute service nor a hypervisor of that name',
                )
            )
        cpus = reported.cpus
        own: list[placement.Provider] = []
        if self._claims is not None:
            known = self._cpus(self._claims, nodes, reported.host)
            cpus = cpus if known is None else known
            own = self._own(self._claims, nodes, reported.host)
            found += self._providers(self._claims, own, reported, cpus)
        elif nodes:
            cpus = sum(one.vcpus for one in nodes)
        if (
            cpus is not None
            and reported.capacity_mcpu > cpus * reservation.MCPU_PER_CPU
        ):
            found.append(
                _overstated(
                    'the agent reports %d mcpu that reservations may use'
                    % reported.capacity_mcpu,
                    reported.capacity_mcpu,
                    cpus,
                )
            )
        foreign = self._foreign(reported)
        if foreign:
            found.append(_foreign(foreign))
        # One for each code, so that each is one event.
        by_code = {one.code: one for one in reversed(found)}
        return Found(cpus, list(by_code.values()), foreign)

    def _cpus(
        self,
        claims: placement.Placement,
        nodes: Sequence[compute.Hypervisor],
        host: str,
    ) -> int | None:
        roots = [one.uuid for one in nodes]
        if not roots:
            # Nova does not know it, or is not configured.
            provider = claims.provider(host)
            roots = [] if provider is None else [provider.uuid]
        total = 0
        for root in roots:
            try:
                _, inventories = claims.inventories(root)
            except placement.Rejected:
                # nova-compute has not created its provider yet.
                continue
            total += sum(
                inventories[name].total
                for name in _CPUS
                if name in inventories
            )
        return total or None

    def _own(
        self,
        claims: placement.Placement,
        nodes: Sequence[compute.Hypervisor],
        host: str,
    ) -> list[placement.Provider]:
        found = (
            claims.provider(names.provider_name(name))
            for name in sorted({one.name for one in nodes} or {host})
        )
        return [one for one in found if one is not None]

    def _providers(
        self,
        claims: placement.Placement,
        own: Sequence[placement.Provider],
        reported: Reported,
        cpus: int | None,
    ) -> list[Contradiction]:
        found = []
        if reported.provider_uuid is not None and own:
            uuids = [one.uuid for one in own]
            if reported.provider_uuid not in uuids:
                found.append(
                    Contradiction(
                        errors.Code.HOST_WRONG_PROVIDER,
                        'the agent reports the provider %s, and placement '
                        'has %s for this host'
                        % (reported.provider_uuid, ', '.join(uuids)),
                    )
                )
        offered = sum(
            _claimable_mcpu(claims.inventories(one.uuid)[1]) for one in own
        )
        if cpus is not None and offered > cpus * reservation.MCPU_PER_CPU:
            found.append(
                _overstated(
                    'its provider in placement offers %d mcpu' % offered,
                    offered,
                    cpus,
                )
            )
        return found

    def _foreign(self, reported: Reported) -> frozenset[str]:
        if self._nova is None or not reported.instances:
            return frozenset()
        return (
            reported.instances
            - self._moving
            - {one.id for one in self._nova.servers(reported.host)}
        )


def _claimable_mcpu(inventories: Mapping[str, placement.Inventory]) -> int:
    one = inventories.get(names.RESOURCE_CLASS)
    if one is None:
        return 0
    return int((one.total - one.reserved) * one.allocation_ratio)


def _overstated(what: str, mcpu: int, cpus: int) -> Contradiction:
    return Contradiction(
        errors.Code.HOST_OVERSTATED,
        '%s, and its compute node has %d CPUs for instances' % (what, cpus),
        {'mcpu': mcpu, 'cpus': cpus},
    )


def _foreign(uuids: frozenset[str]) -> Contradiction:
    named = sorted(uuids)[:_MAX_NAMED]
    return Contradiction(
        errors.Code.INSTANCE_FOREIGN,
        'the agent lists %d instances that Nova does not have on this host: '
        '%s%s'
        % (
            len(uuids),
            ', '.join(named),
            '' if len(named) == len(uuids) else ', ...',
        ),
        {'instances': len(uuids)},
    )
