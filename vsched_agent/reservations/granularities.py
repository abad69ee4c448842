# SPDX-License-Identifier: Apache-2.0

"""How finely the periods of instances are divided, as applied.

:mod:`vsched_agent.communication` decides on it. The journal keeps it, so that
the next agent recognises divided parameters in the kernel as what they are,
and threads that an instance gets by a restart are divided like those before.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.reservations import applied
from vsched_agent.state import store as journals
from vsched_lib.model import granularity
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: For how long the granularity of an instance that does not run is kept, in
#: seconds.
KEEP_S = 600.0


class Division(ty.NamedTuple):
    """The granularities of one instance.

    :param granularity: of the vCPU threads.
    :param io: of I/O threads, by thread.
    """

    granularity: int = 1
    io: Mapping[int, int] = {}


_WHOLE = Division()


class Granularities:
    """The granularities of the instances of this host.

    Not thread-safe: the reconciler's thread is its only caller.

    :param journal: keeps them.
    :param limits: of the backend that divides.
    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        journal: journals.Journal,
        limits: granularity.Limits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._clock = clock
        #: Of the backend that divides.
        self.limits = limits
        self._known: dict[str, Division] = {}
        # Instances that do not run, or were not seen yet, and since when.
        self._absent: dict[str, float] = {}
        for body in journal.granularities():
            try:
                uuid, division = _parse(body)
            except (KeyError, TypeError, ValueError, AttributeError):
                LOG.warning('unreadable granularity in the journal: %s', body)
                continue
            self._known[uuid] = division
            self._absent[uuid] = clock()

    def of(self, uuid: str) -> Division:
        """Return the granularities of an instance."""
        return self._known.get(uuid, _WHOLE)

    def fitting(self, uuid: str, reserved: reservation.Reservation) -> int:
        """Return the granularity of an instance's vCPUs, within the limits.

        :param reserved: what they are to have.
        """
        desired = self.of(uuid).granularity
        if desired == 1:
            return 1
        return min(desired, granularity.finest(reserved, self.limits))

    def record(self, uuid: str, division: Division) -> None:
        """Record what an instance is to have, before it is applied."""
        if division == self._known.get(uuid, _WHOLE):
            return
        if division.granularity == 1 and set(division.io.values()) <= {1}:
            self.forget(uuid)
            return
        self._known[uuid] = division
        self._note(uuid)

    def held(self, uuid: str, applied_granularity: int) -> None:
        """Record the granularity that a reservation was applied with."""
        self._absent.pop(uuid, None)
        division = self.of(uuid)
        if division.granularity != applied_granularity:
            self.record(
                uuid, division._replace(granularity=applied_granularity)
            )

    def divide_io(
        self, uuid: str, io: applied.IoHolding, most: int
    ) -> applied.IoHolding:
        """Return an instance's I/O threads with their granularities.

        They are recorded.

        :param most: the granularity of the vCPUs.
        """
        division = self.of(uuid)
        if most == 1:
            return dataclasses.replace(
                io,
                reservations=tuple(
                    (target, dataclasses.replace(reserved, granularity=1))
                    for target, reserved in io.reservations
                ),
            )
        threads = {}
        reservations = []
        for target, reserved in io.reservations:
            threads[target.tid] = min(
                most,
                division.io.get(target.tid, most),
                granularity.finest(reserved, self.limits),
            )
            reservations.append(
                (
                    target,
                    dataclasses.replace(
                        reserved, granularity=threads[target.tid]
                    ),
                )
            )
        self.record(uuid, division._replace(io=threads))
        return dataclasses.replace(io, reservations=tuple(reservations))

    def remember(self, uuid: str) -> None:
        """Record an instance's granularities again, as records were lost."""
        if uuid in self._known:
            self._note(uuid)

    def drop(self, uuid: str) -> None:
        """Keep an instance's granularities for its next process."""
        if uuid in self._known:
            self._absent.setdefault(uuid, self._clock())

    def forget(self, uuid: str) -> None:
        """Forget an instance's granularities."""
        self._absent.pop(uuid, None)
        if self._known.pop(uuid, None) is not None:
            self._journal.forget_granularity(uuid)

    def prune(self) -> None:
        """Forget instances that have not run for a while."""
        oldest_s = self._clock() - KEEP_S
        for uuid, since_s in list(self._absent.items()):
            if since_s <= oldest_s:
                self.forget(uuid)

    def _note(self, uuid: str) -> None:
        division = self._known[uuid]
        self._journal.note_granularity(
            uuid,
            {
                'instance_uuid': uuid,
                'granularity': division.granularity,
                'io': {str(tid): one for tid, one in division.io.items()},
            },
        )


def _parse(body: Mapping[str, ty.Any]) -> tuple[str, Division]:
    division = Division(
        body['granularity'], {int(tid): one for tid, one in body['io'].items()}
    )
    if not {division.granularity, *division.io.values()} <= set(
        reservation.GRANULARITIES
    ):
        raise ValueError('granularities %s' % (division,))
    return str(body['instance_uuid']), division
