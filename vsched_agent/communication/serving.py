# SPDX-License-Identifier: Apache-2.0

"""The I/O threads that serve an instance's network, and a request's cost.

A request wakes such a thread several times. A part of its divided period has
to cover the whole request: what is missing waits for the next part, and so
does every request behind it.
"""

from collections.abc import Mapping

from vsched_agent.reservations import applied
from vsched_lib.model import communication
from vsched_lib.model import granularity


class ServingThreads:
    """The I/O threads of one process of an instance.

    :param window_s: length of the window whose longest request counts.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._requests: dict[int, communication.Longest] = {}
        # The thread that woke up most often in the last interval.
        self._busiest: int | None = None

    def observe(
        self,
        now_s: float,
        uses: Mapping[int, communication.ThreadUse],
        received: int,
        sent: int,
    ) -> None:
        """Take one interval into account that shows what requests take.

        :param now_s: its end.
        :param uses: by thread.
        :param received: packets that the guest received; likewise ``sent``.
        """
        for tid in self._requests.keys() - uses.keys():
            del self._requests[tid]
        for tid, use in uses.items():
            self._requests.setdefault(
                tid, communication.Longest(self._window_s)
            ).observe(now_s, communication.io_request_ns(use, received, sent))
        self._busiest = max(
            uses, key=lambda tid: (uses[tid].wakeups, -tid), default=None
        )

    def request_ns(self, tid: int) -> float:
        """Return a thread's CPU time for a request, the longest one."""
        return self._requests[tid].burst_ns if tid in self._requests else 0.0

    @property
    def busiest_request_ns(self) -> float:
        """Return that of the thread that serves most; 0 for none."""
        return 0.0 if self._busiest is None else self.request_ns(self._busiest)

    def held(self, io: applied.IoHolding | None) -> bool:
        """Return whether the thread that serves most is reserved."""
        return (
            io is not None
            and self._busiest is not None
            and io.of(self._busiest) is not None
        )

    def divisible(
        self,
        io: applied.IoHolding | None,
        limits: granularity.Limits,
        factor: float,
    ) -> bool:
        """Return whether the thread that serves most can be divided.

        :param factor: of the CPU time of a request that a part has to cover.
        """
        if io is None or self._busiest is None:
            return False
        reserved = io.of(self._busiest)
        return reserved is not None and (
            granularity.finest(
                reserved, limits, factor * self.request_ns(self._busiest)
            )
            > 1
        )

    def parts(
        self,
        io: applied.IoHolding | None,
        most: int,
        limits: granularity.Limits,
        headroom: float,
    ) -> dict[int, int]:
        """Return the granularity of each thread.

        :param most: the granularity of the vCPUs.
        """
        return {
            target.tid: min(
                most,
                granularity.finest(
                    reserved, limits, headroom * self.request_ns(target.tid)
                ),
            )
            for target, reserved in (io.reservations if io else ())
        }

    def too_fine(
        self, io: applied.IoHolding | None, limits: granularity.Limits
    ) -> bool:
        """Return whether a part of a thread is smaller than a request."""
        return any(
            reserved.granularity
            > granularity.finest(reserved, limits, self.request_ns(target.tid))
            for target, reserved in (io.reservations if io else ())
        )
