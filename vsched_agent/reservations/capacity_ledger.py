# SPDX-License-Identifier: Apache-2.0

"""Adds up what instances have of a host's capacity, and what they claim.

Not all that threads have is a claim:

* The guest and the I/O threads of a charged instance may together have more
  than its reservation for a while, because a thread's budget is larger than
  what it uses. That is their surplus.
* I/O threads of instances with ``io_charging=auto`` use what is unclaimed.

Both use capacity that nobody has claimed, and are reclaimed when another
instance claims it: first what is unclaimed, then surplus.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import math
import time
import typing as ty

from vsched_agent.reservations import applied
from vsched_agent.reservations import io_threads
from vsched_lib.model import admission
from vsched_lib.model import host
from vsched_lib.model import reservation

#: How long the host counts as having no spare capacity after the kernel has
#: refused some, in seconds.
SATURATED_S = 30.0


class Capacities(ty.Protocol):
    """Source of the host's capacity."""

    def current(self) -> host.Capacity:
        """Return the present capacity without asking the kernel."""

    def invalidate(self) -> None:
        """Have the kernel asked again at the next update."""


class CapacityLedger:
    """Adds up what instances have.

    :param capacity: of the host.
    :param holdings: what is in force; a view of the enforcer's own.
    :param io: what is in force on I/O threads.
    """

    def __init__(
        self,
        capacity: Capacities,
        holdings: Mapping[str, applied.Holding],
        io: io_threads.IoThreads,
    ) -> None:
        self._capacity = capacity
        self._holdings = holdings
        self._io = io
        self._saturated_until_s = 0.0
        self._lending_from_s = 0.0
        # What each instance has, and the sum: adding all up once per
        # instance would be quadratic in their number.
        self._taken: dict[str, Fraction] = {}
        self._total = Fraction(0)
        # Likewise of the I/O threads that use what is unclaimed.
        self._lent: dict[str, Fraction] = {}
        self._lent_total = Fraction(0)

    def claims(self, without: str | None = None) -> list[admission.Claim]:
        """Return every claim on the host's real-time capacity."""
        claims = [
            held.claim
            for uuid, held in self._holdings.items()
            if uuid != without and held.admitted
        ]
        for uuid, io in self._io.holdings():
            if uuid != without and self.takes_room(uuid, io):
                claims += io.claims
        return claims

    def claimed(self, without: str | None = None) -> Fraction:
        """Return the sum of the claims, in CPUs."""
        return applied.claimed(self.claims(without))

    def by_instance_mcpu(self) -> dict[str, int]:
        """Return the sum of the claims of each instance, rounded up."""
        found = {
            uuid: held.bandwidth
            for uuid, held in self._holdings.items()
            if held.admitted
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
        if io.room is not applied.IoRoom.INSIDE:
            return io.room is applied.IoRoom.ON_TOP
        held = self._holdings.get(uuid)
        # A reservation that takes no capacity has none to share.
        return held is None or not held.admitted

    @property
    def lent(self) -> Fraction:
        """Return what I/O threads have of unclaimed capacity, in CPUs."""
        return self._lent_total

    def unclaimed(self) -> Fraction:
        """Return the capacity beside claims and surplus, in CPUs.

        What is lent of it is included. It is no more than that for a while
        after the kernel has refused some.
        """
        free = self._capacity.current().bound - self._total
        if time.monotonic() < max(
            self._saturated_until_s, self._lending_from_s
        ):
            free = min(free, self._lent_total)
        return free

    def spare(self, without: str) -> Fraction:
        """Return the capacity beside claims and surplus, in CPUs.

        What is lent of it can be reclaimed and is included.

        :param without: the instance whose surplus is left out.
        """
        if time.monotonic() < self._saturated_until_s:
            return Fraction(0)
        return (
            self._capacity.current().bound
            - self._total
            + self._surplus(without)
        )

    def update(self, uuid: str) -> None:
        """Add up again what one instance has."""
        taken = Fraction(0)
        held, io = self._holdings.get(uuid), self._io.holding(uuid)
        if held is not None and held.admitted:
            taken += held.bandwidth + self._surplus(uuid)
        if io is not None and self.takes_room(uuid, io):
            taken += io.bandwidth
        self._total += taken - self._taken.pop(uuid, Fraction(0))
        if taken:
            self._taken[uuid] = taken
        self._lent_total -= self._lent.pop(uuid, Fraction(0))
        if io is not None and io.room is applied.IoRoom.UNCLAIMED:
            self._lent[uuid] = io.bandwidth
            self._lent_total += io.bandwidth

    def lent_to(self, uuid: str) -> Fraction:
        """Return what one instance's I/O threads have of it, in CPUs."""
        return self._lent.get(uuid, Fraction(0))

    def recompute(self) -> None:
        """Add up again what all instances have."""
        self._taken.clear()
        self._total = Fraction(0)
        self._lent.clear()
        self._lent_total = Fraction(0)
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

    def stop_lending(self) -> None:
        """Lend no more for a while: the kernel has less than this ledger."""
        self._lending_from_s = time.monotonic() + SATURATED_S

    def shortage(self, uuid: str, desired: Fraction) -> Fraction:
        """Return what is missing with all that is lent, in CPUs.

        :param uuid: an instance.
        :param desired: all that it is to have.
        """
        return (
            self._total
            - self._taken.get(uuid, Fraction(0))
            + self._lent_total
            - self.lent_to(uuid)
            + desired
            - self._capacity.current().bound
        )

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
            + applied.claimed(desired)
            + sum(map(self._surplus, others), Fraction(0))
            <= self._capacity.current().bound
        ):
            return []
        return others

    def _surplus(self, uuid: str) -> Fraction:
        io = self._io.holding(uuid)
        if (
            io is None
            or io.room is not applied.IoRoom.INSIDE
            or self.takes_room(uuid, io)
        ):
            return Fraction(0)
        # Without a claim of its own the instance has a holding.
        return self._holdings[uuid].surplus(io)
