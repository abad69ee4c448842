# SPDX-License-Identifier: Apache-2.0

"""Reservations of I/O threads in capacity that no instance has claimed.

They are shrunk or released before anything else when the capacity is claimed,
or when the kernel refuses a reservation: first their room for bursts, then
their head-room.
"""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
from fractions import Fraction
import math
import time
import typing as ty

from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reservations import applied
from vsched_agent.reservations import capacity_ledger
from vsched_agent.reservations import io_threads
from vsched_lib.contract import errors
from vsched_lib.model import reservation
from vsched_lib.model import unclaimed

#: Time until a refused reservation is tried again, in seconds.
RETRY_S = 10.0


class _Amount(ty.NamedTuple):
    """Reservations, and their sum in CPUs."""

    holding: applied.IoHolding
    bandwidth: Fraction


@dataclasses.dataclass(slots=True)
class _Entry:
    """What one instance's I/O threads should have.

    :param full: with head-room.
    :param least: what they use.
    :param idle: whether they hardly run.
    :param peak: with room for bursts.
    :param part: with half of that room.
    :param refusal: why they have nothing, or less than they need.
    :param retry_s: until when nothing is tried after a refusal.
    """

    domain: hypervisor.Domain
    full: _Amount
    least: _Amount
    idle: bool
    peak: _Amount
    part: _Amount
    refusal: errors.Refused | None = None
    retry_s: float = 0.0


class _Choice(ty.NamedTuple):
    """What an instance may get, and what it would have then.

    :param current: what is in force in unclaimed capacity.
    """

    demand: unclaimed.Demand
    full: applied.IoHolding
    least: applied.IoHolding
    current: applied.IoHolding | None
    peak: applied.IoHolding | None = None
    part: applied.IoHolding | None = None

    def of(self, grant: unclaimed.Grant) -> applied.IoHolding | None:
        """Return what a grant puts in force."""
        return {
            unclaimed.Grant.NOTHING: None,
            unclaimed.Grant.LEAST: self.least,
            unclaimed.Grant.HELD: self.current,
            unclaimed.Grant.FULL: self.full,
            unclaimed.Grant.PART: self.part,
            unclaimed.Grant.PEAK: self.peak,
        }[grant]


class UnclaimedIo:
    """Divides unclaimed capacity among the I/O threads that may use it.

    Not thread-safe: the reconciler's thread is its only caller.

    :param io: enforces the reservations.
    :param ledger: has what is unclaimed.
    :param divided: returns an instance's reservations with their
        granularities.
    """

    def __init__(
        self,
        io: io_threads.IoThreads,
        ledger: capacity_ledger.CapacityLedger,
        divided: Callable[[str, applied.IoHolding], applied.IoHolding],
    ) -> None:
        self._io = io
        self._ledger = ledger
        self._divided = divided
        self._entries: dict[str, _Entry] = {}

    def set_desired(
        self,
        domain: hypervisor.Domain,
        full: applied.IoHolding,
        least: applied.IoHolding,
        idle: bool = False,
        peak: applied.IoHolding | None = None,
    ) -> None:
        """Set what an instance's I/O threads should have from now on.

        :param full: with head-room.
        :param least: what they use; they get nothing rather than less.
        :param idle: whether they hardly run.
        :param peak: with room for bursts; None for no room.
        """
        peak = peak or full
        entry = self._entries.get(domain.uuid)
        if entry is None or entry.domain.pid != domain.pid:
            self._entries[domain.uuid] = _Entry(
                domain,
                _amount(full),
                _amount(least),
                idle,
                _amount(peak),
                _amount(_between(full, peak)),
            )
            return
        entry.domain, entry.idle = domain, idle
        if (entry.full.holding, entry.peak.holding) != (full, peak):
            entry.part = _amount(_between(full, peak))
        if entry.full.holding != full:
            entry.full = _amount(full)
        if entry.least.holding != least:
            entry.least = _amount(least)
        if entry.peak.holding != peak:
            entry.peak = _amount(peak)

    def adopt(self, domain: hypervisor.Domain) -> None:
        """Take over what an earlier agent has left in force."""
        held = self._io.holding(domain.uuid)
        if held is not None:
            self.set_desired(domain, held, held)

    def forget(self, uuid: str) -> None:
        """Forget an instance; what its threads have stays in force."""
        self._entries.pop(uuid, None)

    def lent_to(self, uuid: str) -> Fraction:
        """Return what an instance has and may keep, in CPUs."""
        return (
            self._ledger.lent_to(uuid)
            if uuid in self._entries
            else Fraction(0)
        )

    def refusal(self, uuid: str) -> errors.Refused | None:
        """Return why an instance's threads lack their reservations."""
        entry = self._entries.get(uuid)
        return entry.refusal if entry else None

    def divide(self) -> None:
        """Give all threads what the unclaimed capacity allows."""
        now_s = time.monotonic()
        free = self._ledger.unclaimed() - self._ledger.lent
        choices = {}
        for uuid, entry in self._entries.items():
            held = self._ledger.lent_to(uuid)
            free += held
            if entry.retry_s <= now_s:
                choices[uuid] = _Choice(
                    unclaimed.Demand(
                        entry.least.bandwidth,
                        entry.full.bandwidth,
                        held,
                        entry.idle,
                        # Threads that have begun come before any room.
                        entry.peak.bandwidth
                        if self._covers(uuid, entry.full.holding)
                        else Fraction(0),
                        entry.part.bandwidth,
                    ),
                    entry.full.holding,
                    entry.least.holding,
                    self._io.holding(uuid),
                    entry.peak.holding,
                    entry.part.holding,
                )
            elif held:
                choices[uuid] = self._keeping(uuid, held)
        self._grant(choices, free, now_s)

    def shrink(self, shortage: Fraction) -> None:
        """Reclaim capacity; nothing grows meanwhile.

        :param shortage: how much at least; nothing if it is not above 0.
        """
        if shortage <= 0 or not self._ledger.lent:
            return
        choices = {}
        free = -shortage
        for uuid, entry in self._entries.items():
            held = self._ledger.lent_to(uuid)
            free += held
            if held:
                choices[uuid] = self._keeping(
                    uuid, held, entry.least, entry.full, entry.part
                )
        self._grant(choices, free, time.monotonic())

    def reclaim(self, refusal: errors.Refused) -> Iterator[None]:
        """Reclaim what the kernel lacks, in steps.

        :param refusal: of something that needs bandwidth.
        :returns: an iterator; it may be tried again after each step.
        """
        if refusal.code != errors.Code.KERNEL_REFUSED or not self._ledger.lent:
            return
        shortage = _shortage(refusal)
        if shortage is not None and shortage > self._ledger.lent:
            # It would not help.
            return
        # Tasks that the ledger does not know use the capacity.
        self._ledger.stop_lending()
        if shortage is not None:
            self.shrink(shortage)
            yield
        self.shrink(self._ledger.lent)
        yield

    def _covers(self, uuid: str, full: applied.IoHolding) -> bool:
        """Return whether what is in force is for the same threads."""
        current = self._io.holding(uuid)
        return current is None or {
            target.tid for target, _ in current.reservations
        } == {target.tid for target, _ in full.reservations}

    def _keeping(
        self,
        uuid: str,
        held: Fraction,
        least: _Amount | None = None,
        full: _Amount | None = None,
        part: _Amount | None = None,
    ) -> _Choice:
        """Return the choice of an instance that gets no more than it has.

        :param least: what it may be shrunk to.
        :param full: what it may be shrunk to before.
        :param part: what it may be shrunk to first.
        """
        current = ty.cast(applied.IoHolding, self._io.holding(uuid))
        now = _Amount(current, held)
        if full is None or full.bandwidth > held:
            full = now
        if least is None or least.bandwidth > held:
            least = now
        if part is None or part.bandwidth > held:
            part = now
        return _Choice(
            unclaimed.Demand(
                least.bandwidth,
                full.bandwidth,
                held,
                self._entries[uuid].idle,
                held,
                part.bandwidth,
            ),
            full.holding,
            least.holding,
            current,
            current,
            part.holding,
        )

    def _grant(
        self, choices: dict[str, _Choice], free: Fraction, now_s: float
    ) -> None:
        grants = unclaimed.divide(
            {uuid: choice.demand for uuid, choice in choices.items()}, free
        )
        growing, bursting = [], []
        rooms = (unclaimed.Grant.PART, unclaimed.Grant.PEAK)
        for uuid, grant in grants.items():
            choice = choices[uuid]
            if grant is unclaimed.Grant.NOTHING:
                self._release(uuid)
                self._refuse(uuid, _lacks(choice.demand.entry, free), now_s)
            elif choice.demand.amount(grant) > choice.demand.held:
                if grant in rooms:
                    bursting.append((uuid, choice.of(grant)))
                    grant = unclaimed.Grant.FULL
                if choice.demand.amount(grant) > choice.demand.held:
                    growing.append((uuid, choice.of(grant)))
            elif not self._apply(uuid, choice.of(grant), now_s):
                self._release(uuid)
        # Only now what the others had is free.
        for uuid, desired in growing:
            if not self._apply(uuid, desired, now_s):
                # The kernel has no more for the others either.
                return
        for uuid, desired in bursting:
            if self._has_full(uuid) and not self._apply(
                uuid, desired, now_s, report=False
            ):
                return

    def _release(self, uuid: str) -> None:
        # By the journal: what could not be repaired is no holding any more.
        self._io.release(self._entries[uuid].domain)
        self._ledger.update(uuid)

    def _refuse(
        self, uuid: str, refusal: errors.Refused, now_s: float
    ) -> None:
        entry = self._entries[uuid]
        entry.refusal, entry.retry_s = refusal, now_s + RETRY_S

    def _has_full(self, uuid: str) -> bool:
        """Return whether an instance's threads have all that they need."""
        full = self._entries[uuid].full.bandwidth
        return self._ledger.lent_to(uuid) >= full

    def _apply(
        self,
        uuid: str,
        desired: applied.IoHolding | None,
        now_s: float,
        report: bool = True,
    ) -> bool:
        """Put reservations in force.

        :param report: whether a refusal is one of the instance's. Of room for
            bursts it is not, as the threads have all that they need.
        :returns: False when the kernel has too little bandwidth.
        """
        entry, current = self._entries[uuid], self._io.holding(uuid)
        if desired is not None:
            desired = self._divided(uuid, desired)
        if desired is None or desired == current:
            if entry.retry_s <= now_s:
                entry.refusal = None
            return True
        try:
            self._io.apply(uuid, desired)
        except errors.Refused as refusal:
            if refusal.code == errors.Code.THREADS_GONE:
                # The next reading has those that are left.
                if report:
                    entry.refusal = refusal
                return True
            if report:
                self._refuse(uuid, refusal, now_s)
            if refusal.code == errors.Code.KERNEL_REFUSED:
                self._ledger.stop_lending()
                return False
        else:
            entry.refusal = None
        finally:
            self._ledger.update(uuid)
        return True


def _amount(holding: applied.IoHolding) -> _Amount:
    return _Amount(holding, holding.bandwidth)


def _between(
    full: applied.IoHolding, peak: applied.IoHolding
) -> applied.IoHolding:
    """Return reservations with half of the room for bursts.

    :param peak: of the same threads, in the same order.
    """
    return dataclasses.replace(
        peak,
        reservations=tuple(
            (
                target,
                dataclasses.replace(
                    more, runtime_us=(less.runtime_us + more.runtime_us) // 2
                ),
            )
            for (_, less), (target, more) in zip(
                full.reservations, peak.reservations, strict=True
            )
        ),
    )


def _lacks(needed: Fraction, free: Fraction) -> errors.Refused:
    figures = {
        'needed_mcpu': math.ceil(needed * reservation.MCPU_PER_CPU),
        'unclaimed_mcpu': max(0, math.floor(free * reservation.MCPU_PER_CPU)),
    }
    return errors.Refused(
        'they need %(needed_mcpu)d mcpu; no instance has claimed '
        '%(unclaimed_mcpu)d mcpu, and I/O threads that need less come first'
        % figures,
        errors.Code.DOES_NOT_FIT,
        figures,
    )


def _shortage(refusal: errors.Refused) -> Fraction | None:
    """Return what the kernel lacks by its own figures, rounded up."""
    try:
        lacking_mcpu = (
            refusal.figures['needed_mcpu']
            - refusal.figures['held_mcpu']
            - refusal.figures['free_mcpu']
        )
    except KeyError:
        return None
    # Each of the three is rounded.
    return Fraction(max(1, lacking_mcpu) + 2, reservation.MCPU_PER_CPU)
