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
            use for use in reading.threads if use.role in SERVING
        )
        for tid in self._needs.keys() - {use.tid for use in self._uses}:
            del self._needs[tid]
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
                self._held(use.tid),
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
        shares = {
            use.tid: self._needs[use.tid].share(self._held(use.tid))
            for use in self._uses
        }
        if bound is not None:
            shares = charging.within(shares, bound)
        return self._assign(shares, period_us, mode)

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

    def _held(self, tid: int) -> float:
        before = self._before[tid]
        return float(before.utilisation) if before else 0.0

    def _assign(
        self,
        shares: Mapping[int, float],
        period_us: int,
        mode: reservation.Mode,
    ) -> Assignments:
        assignments = []
        for index, use in enumerate(self._uses):
            share, reserved = shares[use.tid], self._before[use.tid]
            if (
                reserved is None
                or share != self._held(use.tid)
                or (reserved.period_us, reserved.mode) != (period_us, mode)
            ):
                reserved = reservation.Reservation(
                    charging.io_runtime_us(share, period_us, self._tick_us),
                    period_us,
                    mode,
                )
            assignments.append((base.Target(index, use.tid), reserved))
        return tuple(assignments)
