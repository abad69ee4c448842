# SPDX-License-Identifier: Apache-2.0

"""Sizes the reservations of one instance's I/O threads.

The arithmetic is in :mod:`vsched_lib.model.charging`.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from vsched_agent.accounting import base as readings
from vsched_agent.enforcement import base
from vsched_agent.reservations import applied
from vsched_lib.model import charging
from vsched_lib.model import reservation

#: Roles of threads that serve I/O. Others of a process are short-lived.
SERVING = frozenset(
    (readings.Role.EMULATOR, readings.Role.IOTHREAD, readings.Role.VHOST)
)

#: Fewer requests a second do not show how they arrive.
LEAST_REQUESTS_PER_S = 10.0
#: Their bursts count as those before while they are above this part of them.
_BURSTS_KEPT = 0.75

Assignments = tuple[base.Assignment, ...]


class IoSizing:
    """What the threads of one instance need, from what they did.

    :param policy: how budgets are sized.
    :param tick_us: the host's scheduler tick.
    """

    def __init__(self, policy: charging.IoPolicy, tick_us: int) -> None:
        self._policy = policy
        self._tick_us = tick_us
        self._needs: dict[int, charging.IoNeed] = {}
        self._uses: Sequence[readings.ThreadUse] = ()
        self._before: dict[int, reservation.Reservation | None] = {}
        # What they were to have with head-room when that was last computed.
        self._full: dict[int, reservation.Reservation] = {}
        # Likewise with room for bursts.
        self._peak: dict[int, reservation.Reservation] = {}
        self._bursts = 1.0

    @property
    def coming(self) -> float:
        """The share that they are about to use, while any of them starves."""
        needs = self._needs.values()
        if not any(need.starves for need in needs):
            return 0.0
        return sum(need.last for need in needs)

    @property
    def idle(self) -> bool:
        """Whether none of them has done anything to speak of lately."""
        return all(need.idle for need in self._needs.values())

    def observe(
        self, reading: readings.Reading, current: applied.IoHolding | None
    ) -> None:
        """Take one interval into account.

        :param current: what was in force in it.
        """
        self._uses = sorted(
            use
            for use in reading.threads
            if use.role in SERVING and reading.vcpus_are_threads
        )
        for tid in self._needs.keys() - {use.tid for use in self._uses}:
            del self._needs[tid]
            self._full.pop(tid, None)
            self._peak.pop(tid, None)
        self._before = {
            use.tid: current.of(use.tid) if current else None
            for use in self._uses
        }
        for use in self._uses:
            self._needs.setdefault(
                use.tid, charging.IoNeed(self._policy)
            ).observe(
                use.run_ns / 1000,
                use.wait_ns / 1000,
                reading.interval_ns / 1000,
                _share(self._before[use.tid]),
            )

    def full(
        self,
        period_us: int,
        mode: reservation.Mode,
        bound: float | None = None,
    ) -> Assignments:
        """Return reservations with head-room, as they were where possible.

        :param bound: the largest sum of their shares.
        """
        before = {use.tid: self._without_room(use.tid) for use in self._uses}
        shares = {
            tid: self._needs[tid].share(_share(one))
            for tid, one in before.items()
        }
        if bound is not None:
            shares = charging.within(shares, bound)
        full = self._assign(shares, before, period_us, mode)
        self._full = {target.tid: one for target, one in full}
        return full

    def with_room(
        self, full: Assignments, requests_per_s: float
    ) -> Assignments:
        """Return reservations with room for bursts of requests.

        :param full: from :meth:`full`
        :param requests_per_s: that the instance served in the interval.
        """
        if requests_per_s >= LEAST_REQUESTS_PER_S:
            bursts = charging.peak(requests_per_s)
            if not self._bursts * _BURSTS_KEPT <= bursts <= self._bursts:
                self._bursts = bursts
        if not full:
            return full
        shares, before = {}, {}
        for target, reserved in full:
            tid = target.tid
            last = self._peak.get(tid) or self._before[tid]
            shares[tid] = self._needs[tid].share_with_room(
                _share(reserved), self._bursts, _share(last)
            )
            before[tid] = reserved if shares[tid] == _share(reserved) else last
        peak = self._assign(
            shares, before, full[0][1].period_us, full[0][1].mode
        )
        self._peak = {target.tid: one for target, one in peak}
        return peak

    def least(self, full: Assignments) -> Assignments:
        """Return reservations without head-room.

        :param full: from :meth:`full`
        """
        least = []
        for target, reserved in full:
            runtime_us = charging.io_runtime_us(
                self._needs[target.tid].least,
                reserved.period_us,
                self._tick_us,
            )
            least.append(
                (target, reserved)
                if runtime_us >= reserved.runtime_us
                else (
                    target,
                    reservation.Reservation(
                        runtime_us, reserved.period_us, reserved.mode
                    ),
                )
            )
        return tuple(least)

    def _without_room(self, tid: int) -> reservation.Reservation | None:
        """Return what a thread has, or had to have, without room for bursts.

        Otherwise room that it has would be taken for its head-room, and be
        kept as long as that.
        """
        before, full = self._before[tid], self._full.get(tid)
        return full if full and _share(full) < _share(before) else before

    def _assign(
        self,
        shares: Mapping[int, float],
        before: Mapping[int, reservation.Reservation | None],
        period_us: int,
        mode: reservation.Mode,
    ) -> Assignments:
        """Return reservations of shares.

        :param before: those that are kept where the share is the same.
        """
        assignments = []
        for index, use in enumerate(self._uses):
            share, reserved = shares[use.tid], before[use.tid]
            if (
                reserved is None
                or share != _share(reserved)
                or (reserved.period_us, reserved.mode) != (period_us, mode)
            ):
                reserved = reservation.Reservation(
                    charging.io_runtime_us(share, period_us, self._tick_us),
                    period_us,
                    mode,
                )
            assignments.append((base.Target(index, use.tid), reserved))
        return tuple(assignments)


def _share(reserved: reservation.Reservation | None) -> float:
    return float(reserved.utilisation) if reserved else 0.0
