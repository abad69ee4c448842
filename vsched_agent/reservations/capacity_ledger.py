# SPDX-License-Identifier: Apache-2.0

"""Adds up the claims on this host and checks what fits beside them.

The guest and the I/O threads of a charged instance may together have more
than its reservation for a while, because a thread's budget is larger than
what it uses. That surplus is not a claim: it uses spare capacity and is
reclaimed when another instance claims it.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import math
import time

from vsched_agent.reservations import applied
from vsched_agent.reservations import io_threads
from vsched_agent.reservations import limits
from vsched_lib.contract import errors
from vsched_lib.model import admission
from vsched_lib.model import fit
from vsched_lib.model import reservation
from vsched_lib.model import room

#: How long the host counts as having no spare capacity after the kernel has
#: refused some, in seconds.
SATURATED_S = 30.0


class CapacityLedger:
    """Adds up what instances have.

    :param capacity: of the host.
    :param test: the admission test.
    :param holdings: what is in force; a view of the enforcer's own.
    :param io: what is in force on I/O threads.
    """

    def __init__(
        self,
        capacity: limits.Capacities,
        test: admission.Test,
        holdings: Mapping[str, applied.Holding],
        io: io_threads.IoThreads,
    ) -> None:
        self._capacity = capacity
        self._test = test
        self._holdings = holdings
        self._io = io
        self._saturated_until_s = 0.0
        # What each instance has, and the sum: adding all up once per
        # instance would be quadratic in their number.
        self._taken: dict[str, Fraction] = {}
        self._total = Fraction(0)

    def claims(self, without: str | None = None) -> list[admission.Claim]:
        """Return every claim on the host's real-time capacity."""
        claims = [
            held.claim
            for uuid, held in self._holdings.items()
            if uuid != without and held.guaranteed
        ]
        for uuid, io in self._io.holdings():
            if uuid != without and self.takes_room(uuid, io):
                claims += io.claims
        return claims

    def claimed(self, without: str | None = None) -> Fraction:
        """Return the sum of the claims, in CPUs."""
        return _sum(self.claims(without))

    def by_instance_mcpu(self) -> dict[str, int]:
        """Return the sum of the claims of each instance, rounded up."""
        found = {
            uuid: held.bandwidth
            for uuid, held in self._holdings.items()
            if held.guaranteed
        }
        for uuid, io in self._io.holdings():
            if self.takes_room(uuid, io):
                found[uuid] = found.get(uuid, Fraction(0)) + io.bandwidth
        return {
            uuid: math.ceil(reservation.MCPU_PER_CPU * bandwidth)
            for uuid, bandwidth in found.items()
        }

    def takes_room(self, uuid: str, io: applied.IoHolding) -> bool:
        """Return whether an instance's I/O threads claim capacity."""
        held = self._holdings.get(uuid)
        # A reservation without a guarantee has no capacity to share.
        return io.on_top or held is None or not held.guaranteed

    def spare(self, without: str) -> Fraction:
        """Return the capacity beside claims and surplus, in CPUs.

        :param without: the instance whose surplus is left out.
        """
        if time.monotonic() < self._saturated_until_s:
            return Fraction(0)
        return (
            self._capacity.current().bound
            - self._total
            + (self._surplus(without))
        )

    def update(self, uuid: str) -> None:
        """Add up again what one instance has."""
        taken = Fraction(0)
        held, io = self._holdings.get(uuid), self._io.holding(uuid)
        if held is not None and held.guaranteed:
            taken += held.bandwidth + self._surplus(uuid)
        if io is not None and self.takes_room(uuid, io):
            taken += io.bandwidth
        self._total += taken - self._taken.pop(uuid, Fraction(0))
        if taken:
            self._taken[uuid] = taken

    def recompute(self) -> None:
        """Add up again what all instances have."""
        self._taken.clear()
        self._total = Fraction(0)
        for uuid in self._holdings.keys() | dict(self._io.holdings()).keys():
            self.update(uuid)

    def saturated(
        self, uuid: str, after: applied.Holding, io: applied.IoHolding
    ) -> bool:
        """Note that the kernel has refused this for want of spare capacity.

        :returns: False when it needs no spare capacity, which then is not
            the cause.
        """
        if self.takes_room(uuid, io) or not after.surplus(io):
            return False
        self._saturated_until_s = time.monotonic() + SATURATED_S
        return True

    def reclaimable(
        self, uuid: str, desired: Sequence[admission.Claim]
    ) -> list[str]:
        """Return the instances whose surplus has to make room for claims."""
        others = [
            other
            for other in self._holdings
            if other != uuid and self._surplus(other)
        ]
        if (
            not others
            or self.claimed(uuid)
            + _sum(desired)
            + sum(map(self._surplus, others), Fraction(0))
            <= self._capacity.current().bound
        ):
            return []
        return others

    def admit(
        self,
        uuid: str,
        kept: Sequence[admission.Claim],
        asked: Sequence[admission.Claim],
    ) -> None:
        """Refuse what does not fit beside the others' claims.

        :param uuid: the instance that asks.
        :param kept: its other claims.
        :raises errors.Refused: with the figures.
        """
        capacity = self._capacity.current()
        verdict = admission.admit(
            [*self.claims(without=uuid), *kept, *asked], capacity, self._test
        )
        if verdict.fits:
            return
        asked_mcpu = math.ceil(reservation.MCPU_PER_CPU * _sum(asked))
        raise errors.Refused(
            '%d mcpu asked; %s' % (asked_mcpu, verdict.reason),
            errors.Code.DOES_NOT_FIT,
            {
                'asked_mcpu': asked_mcpu,
                'needed_mcpu': verdict.needed_mcpu,
                'allowed_mcpu': verdict.bound_mcpu,
                'capacity_mcpu': capacity.capacity_mcpu,
                'test': str(verdict.test),
                'cpu': verdict.cpu,
            },
        )

    def check_io_headroom(self, uuid: str, need: fit.Need) -> None:
        """Refuse what the scheduler filters would not place here.

        Uses the same rounded figures as they do, and the predicted cost of
        the instance's I/O, which includes what its I/O threads have.

        :param need: what it takes of this host.
        :raises errors.Refused: with the figures.
        """
        capacity_mcpu = self._capacity.current().capacity_mcpu
        free_mcpu = capacity_mcpu - math.ceil(
            reservation.MCPU_PER_CPU * self.claimed(without=uuid)
        )
        if not room.lacks(need, free_mcpu):
            return
        overhead_mcpu = need.demand_mcpu - need.guest_mcpu
        raise errors.Refused(
            "%d mcpu asked, and %d for the host's work on its I/O at the "
            "flavor's rates; %d of %d are free"
            % (need.guest_mcpu, overhead_mcpu, free_mcpu, capacity_mcpu),
            errors.Code.DOES_NOT_FIT,
            {
                'asked_mcpu': need.guest_mcpu,
                'overhead_mcpu': overhead_mcpu,
                'needed_mcpu': need.demand_mcpu,
                'free_mcpu': free_mcpu,
                'capacity_mcpu': capacity_mcpu,
            },
        )

    def _surplus(self, uuid: str) -> Fraction:
        io = self._io.holding(uuid)
        if io is None or self.takes_room(uuid, io):
            return Fraction(0)
        # Without a claim of its own the instance has a holding.
        return self._holdings[uuid].surplus(io)


def _sum(claims: Sequence[admission.Claim]) -> Fraction:
    """Return Σ Q/P over all vCPUs, in CPUs."""
    # As in IoHolding.bandwidth: few periods, many claims.
    runtimes_us: dict[int, int] = {}
    for claim in claims:
        reserved = claim.reservation
        runtimes_us[reserved.period_us] = reserved.runtime_us * len(
            claim.pins
        ) + runtimes_us.get(reserved.period_us, 0)
    return sum(
        (
            Fraction(runtime_us, period_us)
            for period_us, runtime_us in runtimes_us.items()
        ),
        Fraction(0),
    )
