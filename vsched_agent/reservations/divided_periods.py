# SPDX-License-Identifier: Apache-2.0

"""Divides the periods of reservations that are in force."""

from collections.abc import Mapping
import dataclasses

from vsched_agent.enforcement import base
from vsched_agent.reservations import applied
from vsched_agent.reservations import granularities
from vsched_agent.reservations import io_threads
from vsched_agent.reservations import vcpu_threads
from vsched_lib.contract import errors
from vsched_lib.model import granularity
from vsched_lib.model import reservation


class DividedPeriods:
    """Divides the periods of instances' vCPU and I/O threads.

    Not thread-safe: the reconciler's thread is its only caller.

    :param known: the granularities, as recorded.
    :param backends: by name.
    :param vcpus: what is in force on vCPU threads.
    :param io: what is in force on I/O threads.
    """

    def __init__(
        self,
        known: granularities.Granularities,
        backends: Mapping[reservation.Backend, base.Backend],
        vcpus: vcpu_threads.VcpuThreads,
        io: io_threads.IoThreads,
    ) -> None:
        self._granularities = known
        self._backends = backends
        self._vcpus = vcpus
        self._io = io

    @property
    def limits(self) -> granularity.Limits:
        """Return the limits of divided periods."""
        return self._granularities.limits

    def divide(
        self, uuid: str, parts: int, io_parts: Mapping[int, int]
    ) -> None:
        """Divide the periods of an instance's vCPU and I/O threads.

        All threads change in one step; bandwidths stay the same.

        :param parts: the granularity of its vCPUs.
        :param io_parts: those of its I/O threads; ``parts`` for others.
        :raises errors.Refused: every thread then keeps what it had.
        """
        held, io = self._vcpus.holdings[uuid], self._io.holding(uuid)
        if not held.guaranteed and parts > 1:
            raise errors.Refused(
                'backend %s has no periods that can be divided' % held.backend,
                errors.Code.COMMUNICATION_UNSUPPORTED,
            )
        before = self._granularities.of(uuid)
        after = dataclasses.replace(held, granularity=parts)
        self._granularities.record(
            uuid, granularities.Division(parts, dict(io_parts))
        )
        assignments = after.assignments
        if io is not None:
            io = self._granularities.divide_io(uuid, io, parts)
            assignments += io.reservations
        try:
            self._backends[held.backend].apply_each(assignments)
        except errors.Refused:
            self._granularities.record(uuid, before)
            raise
        self._vcpus.set_holding(uuid, after)
        if io is not None:
            self._io.set_holding(uuid, io)

    def divided_io(
        self, uuid: str, io: applied.IoHolding
    ) -> applied.IoHolding:
        """Return an instance's I/O threads with their granularities."""
        held = self._vcpus.holdings.get(uuid)
        return self._granularities.divide_io(
            uuid, io, held.granularity if held else 1
        )
