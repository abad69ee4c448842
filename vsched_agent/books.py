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


"""What is claimed of this host, and what fits beside it.

An instance that pays for the host's work with its own promise may hold more
than that for a while, guest and I/O threads together: the budget of a thread
is larger than what it uses. That surplus is nobody's claim. It takes room
that nobody else wants, and goes when somebody does.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import math
import time

from vsched_agent import in_force
from vsched_agent import io_threads
from vsched_agent import limits
from vsched_lib.contract import errors
from vsched_lib.model import admission
from vsched_lib.model import fit
from vsched_lib.model import reservation
from vsched_lib.model import room

#: How long the room beside all claims counts as taken after the kernel has
#: refused it, in seconds.
CROWDED_S = 30.0


class Books:
    """Adds up what instances hold.

    :param capacity: what the host can promise.
    :param test: the admission test.
    :param holdings: what is in force, as its keeper changes it.
    :param io: what is in force on I/O threads.
    """

    def __init__(self, capacity: limits.Capacities, test: admission.Test,
                 holdings: Mapping[str, in_force.Holding],
                 io: io_threads.IoThreads) -> None:
        self._capacity = capacity
        self._test = test
        self._holdings = holdings
        self._io = io
        self._crowded_s = 0.0
        # What each instance holds, and all of them: to add it up for each
        # of them would be too much for a host with many.
        self._taken: dict[str, Fraction] = {}
        self._total = Fraction(0)

    def claims(self, without: str | None = None) -> list[admission.Claim]:
        """Every claim on the host's real-time capacity."""
        claims = [held.claim for uuid, held in self._holdings.items()
                  if uuid != without and held.guaranteed]
        for uuid, io in self._io.holdings():
            if uuid != without and self.takes_room(uuid, io):
                claims += io.claims
        return claims

    def claimed(self, without: str | None = None) -> Fraction:
        """What the claims add up to, in CPUs."""
        return _sum(self.claims(without))

    def by_instance_mcpu(self) -> dict[str, int]:
        """What each instance claims, rounded up."""
        found = {uuid: held.bandwidth for uuid, held in
                 self._holdings.items() if held.guaranteed}
        for uuid, io in self._io.holdings():
            if self.takes_room(uuid, io):
                found[uuid] = found.get(uuid, Fraction(0)) + io.bandwidth
        return {uuid: math.ceil(reservation.MCPU_PER_CPU * bandwidth)
                for uuid, bandwidth in found.items()}

    def takes_room(self, uuid: str, io: in_force.IoHolding) -> bool:
        """Whether an instance's I/O threads are a claim of their own."""
        held = self._holdings.get(uuid)
        # Inside of what guarantees nothing there is no room to be in.
        return io.on_top or held is None or not held.guaranteed

    def spare(self, without: str) -> Fraction:
        """The room that neither claims nor others' surplus take, in CPUs.

        :param without: whose surplus is left out.
        """
        if time.monotonic() < self._crowded_s:
            return Fraction(0)
        return self._capacity.current().bound - self._total + (
            self._surplus(without))

    def changed(self, uuid: str) -> None:
        """What an instance holds is not what it was."""
        taken = Fraction(0)
        held, io = self._holdings.get(uuid), self._io.holding(uuid)
        if held is not None and held.guaranteed:
            taken += held.bandwidth + self._surplus(uuid)
        if io is not None and self.takes_room(uuid, io):
            taken += io.bandwidth
        self._total += taken - self._taken.pop(uuid, Fraction(0))
        if taken:
            self._taken[uuid] = taken

    def add_up(self) -> None:
        """Anything may have changed."""
        self._taken.clear()
        self._total = Fraction(0)
        for uuid in self._holdings.keys() | dict(self._io.holdings()).keys():
            self.changed(uuid)

    def crowded(self, uuid: str, after: in_force.Holding,
                io: in_force.IoHolding) -> bool:
        """The kernel has refused this; there is no spare room for a while.

        :returns: whether it was for want of spare room.
        """
        if self.takes_room(uuid, io) or not after.surplus(io):
            return False
        self._crowded_s = time.monotonic() + CROWDED_S
        return True

    def in_the_way(self, uuid: str,
                   wanted: Sequence[admission.Claim]) -> list[str]:
        """Instances whose surplus has to go for what another one claims."""
        others = [other for other in self._holdings
                  if other != uuid and self._surplus(other)]
        if not others or self.claimed(uuid) + _sum(wanted) + sum(
                map(self._surplus, others),
                Fraction(0)) <= self._capacity.current().bound:
            return []
        return others

    def admit(self, uuid: str, kept: Sequence[admission.Claim],
              asked: Sequence[admission.Claim]) -> None:
        """Refuse what does not fit beside the others' claims.

        :param uuid: who asks.
        :param kept: what it claims besides.
        :raises errors.Refused: with the figures.
        """
        capacity = self._capacity.current()
        verdict = admission.admit(
            [*self.claims(without=uuid), *kept, *asked], capacity,
            self._test)
        if verdict.fits:
            return
        asked_mcpu = math.ceil(reservation.MCPU_PER_CPU * _sum(asked))
        raise errors.Refused(
            '%d mcpu asked; %s' % (asked_mcpu, verdict.reason),
            errors.Code.DOES_NOT_FIT, {
                'asked_mcpu': asked_mcpu,
                'needed_mcpu': verdict.needed_mcpu,
                'allowed_mcpu': verdict.bound_mcpu,
                'capacity_mcpu': capacity.capacity_mcpu,
                'test': str(verdict.test), 'cpu': verdict.cpu})

    def afford(self, uuid: str, need: fit.Need) -> None:
        """Refuse what schedulers would not place here.

        It is judged by the same whole numbers that they are told, and with
        what its I/O is foretold to cost; what its I/O threads hold already
        is part of that.

        :param need: what it takes of this host.
        :raises errors.Refused: with the figures.
        """
        capacity_mcpu = self._capacity.current().capacity_mcpu
        free_mcpu = capacity_mcpu - math.ceil(
            reservation.MCPU_PER_CPU * self.claimed(without=uuid))
        if not room.lacks(need, free_mcpu):
            return
        overhead_mcpu = need.demand_mcpu - need.guest_mcpu
        raise errors.Refused(
            '%d mcpu asked, and %d for the host\'s work on its I/O at the '
            'flavor\'s rates; %d of %d are free' % (
                need.guest_mcpu, overhead_mcpu, free_mcpu, capacity_mcpu),
            errors.Code.DOES_NOT_FIT, {
                'asked_mcpu': need.guest_mcpu,
                'overhead_mcpu': overhead_mcpu,
                'needed_mcpu': need.demand_mcpu, 'free_mcpu': free_mcpu,
                'capacity_mcpu': capacity_mcpu})

    def _surplus(self, uuid: str) -> Fraction:
        io = self._io.holding(uuid)
        if io is None or self.takes_room(uuid, io):
            return Fraction(0)
        # Who takes no room of its own is held.
        return self._holdings[uuid].surplus(io)


def _sum(claims: Sequence[admission.Claim]) -> Fraction:
    """Σ Q/P over all vCPUs, in CPUs."""
    # As in IoHolding.bandwidth: few periods, many claims.
    runtimes_us: dict[int, int] = {}
    for claim in claims:
        promise = claim.reservation
        runtimes_us[promise.period_us] = promise.runtime_us * len(
            claim.pins) + runtimes_us.get(promise.period_us, 0)
    return sum((Fraction(runtime_us, period_us) for
                period_us, runtime_us in runtimes_us.items()), Fraction(0))
