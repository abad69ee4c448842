# SPDX-License-Identifier: Apache-2.0

"""Charge instances for the host's work on their I/O.

A charge is a reservation of the instance's I/O threads, and what is left of
the instance's own reservation for its vCPUs.
:mod:`vsched_agent.reservations.io_charging` decides how large it is.
"""

from collections.abc import Callable
from collections.abc import Sequence

from vsched_agent.reservations import applied
from vsched_agent.reservations import capacity_ledger
from vsched_agent.reservations import divided_periods
from vsched_agent.reservations import io_threads
from vsched_agent.reservations import unclaimed_io
from vsched_agent.reservations import vcpu_threads
from vsched_lib.contract import errors
from vsched_lib.model import admission


class Charges:
    """Applies charges, as the capacity of the host allows.

    Not thread-safe: the reconciler's thread is its only caller.

    :param vcpus: enforces the reservations of vCPU threads.
    :param io: enforces those of I/O threads.
    :param periods: divides their periods.
    :param ledger: what is in use.
    :param unclaimed: divides what is unclaimed.
    :param admit: admits an instance's new claims beside its other ones.
    :param reclaiming: takes a step, reclaiming capacity if the kernel
        refuses it.
    """

    def __init__(
        self,
        vcpus: vcpu_threads.VcpuThreads,
        io: io_threads.IoThreads,
        periods: divided_periods.DividedPeriods,
        ledger: capacity_ledger.CapacityLedger,
        unclaimed: unclaimed_io.UnclaimedIo,
        admit: Callable[
            [str, Sequence[admission.Claim], Sequence[admission.Claim]], None
        ],
        reclaiming: Callable[[Callable[[], None]], None],
    ) -> None:
        self._vcpus = vcpus
        self._io = io
        self._periods = periods
        self._ledger = ledger
        self._unclaimed = unclaimed
        self._admit = admit
        self._reclaiming = reclaiming

    def apply(self, uuid: str, io: applied.IoHolding, runtime_us: int) -> None:
        """Apply reservations to an instance's I/O threads and its guest.

        :param io: for the I/O threads. If part of the instance's
            reservation, it has to be smaller than that.
        :param runtime_us: for each vCPU. While the host has no spare
            capacity the vCPUs get no more than the I/O threads leave of
            the reservation.
        :raises errors.Refused: when the I/O threads keep what they had.
        """
        self._unclaimed.forget(uuid)
        held = self._vcpus.holdings[uuid]
        io = self._periods.divided_io(uuid, io)
        after = held.lowered(runtime_us)
        if after.now == held.now and self._io.holding(uuid) == io:
            return
        if self._ledger.takes_room(uuid, io):
            if self._io.holding(uuid) != io:
                self._admit(
                    uuid, [held.claim] if held.admitted else [], io.claims
                )
        else:
            spare = self._ledger.spare(uuid)
            if after.surplus(io) > spare:
                after = after.inside(io, spare)
            self._unclaimed.shrink(
                self._ledger.shortage(uuid, held.bandwidth + after.surplus(io))
            )
        try:
            self._reclaiming(lambda: self._apply(uuid, after, io))
        except errors.Refused as refusal:
            if refusal.code != errors.Code.KERNEL_REFUSED or not (
                self._ledger.saturated(uuid, after, io)
            ):
                raise
            # Tasks that the ledger does not know use the capacity.
            self._apply(uuid, held.inside(io), io)

    def lower(self, uuid: str, after: applied.Holding) -> None:
        """Change what an instance's guest has of its reservation.

        :param after: the same holding with another ``guest``.
        :raises errors.Refused: every thread then keeps what it had.
        """
        self._vcpus.lower(uuid, after)
        self._ledger.update(uuid)

    def _apply(
        self, uuid: str, after: applied.Holding, io: applied.IoHolding
    ) -> None:
        try:
            before = self._vcpus.holdings[uuid]
            if after.now.runtime_us < before.now.runtime_us:
                self.lower(uuid, after)
                self._io.apply(uuid, io)
            else:
                self._io.apply(uuid, io)
                self.lower(uuid, after)
        finally:
            self._ledger.update(uuid)
