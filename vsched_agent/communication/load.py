# SPDX-License-Identifier: Apache-2.0

"""What instances communicate, from the readings of accounting."""

from collections.abc import Collection
from collections.abc import Mapping
import typing as ty

from vsched_agent.accounting import base as readings
from vsched_agent.reservations import applied
from vsched_agent.reservations import io_sizing
from vsched_lib.contract import messages
from vsched_lib.model import communication
from vsched_lib.model import granularity
from vsched_lib.model import reservation
from vsched_lib.model import wait_trial


class Finest(ty.NamedTuple):
    """The finest granularities of one instance at present.

    :param bound: that its reservations permit.
    :param stay: that its requests permit.
    :param rise: that they permit with head-room.
    """

    bound: int
    stay: int
    rise: int


class InstanceLoad:
    """The communication of one process of an instance.

    :param pid: the process.
    :param window_s: length of the window whose longest request counts.
    :param least_pps: see :class:`communication.Load`.
    """

    def __init__(self, pid: int, window_s: float, least_pps: float) -> None:
        self.pid = pid
        self._window_s = window_s
        self._load = communication.Load(window_s, least_pps)
        self._io: dict[int, communication.Longest] = {}
        # The I/O thread that woke up most often in the last interval.
        self._busiest: int | None = None
        self.received_pps = 0.0
        self.sent_pps = 0.0
        #: Whether finer periods have shortened what packets wait.
        self.trial = wait_trial.WaitTrial()

    @property
    def intensity(self) -> float:
        """Return the network intensity, in packets per second."""
        return self._load.intensity

    @property
    def known(self) -> bool:
        """Return whether any interval has shown what requests take."""
        return self._load.known

    @property
    def burst_ns(self) -> float:
        """Return the CPU time of the longest request of the window."""
        return self._load.burst_ns

    def observe(
        self,
        now_s: float,
        used: messages.UsageSample,
        reading: readings.Reading,
        sleeps: Mapping[int, int],
        now: reservation.Reservation,
    ) -> None:
        """Take one interval into account.

        :param sleeps: how often threads slept, where it is known.
        :param now: what each vCPU has.
        """
        interval_s = reading.interval_ns / 1e9
        vcpus, serving = [], {}
        for use in reading.threads:
            seen = communication.ThreadUse(
                use.run_ns,
                use.wait_ns,
                min(use.timeslices, sleeps.get(use.tid, use.timeslices)),
            )
            if use.role is readings.Role.VCPU:
                vcpus.append(seen)
            elif use.role in io_sizing.SERVING:
                serving[use.tid] = seen
        shown = self._load.observe(
            now_s,
            communication.Traffic(
                interval_s,
                used.net_rx_packets,
                used.net_tx_packets,
                vcpus,
                list(serving.values()),
            ),
            now.runtime_us * reservation.NS_PER_US,
        )
        self.trial.observe(
            now_s,
            used.net_rx_packets + used.net_tx_packets,
            sum(one.wait_ns for one in (*vcpus, *serving.values())),
            now.granularity,
            now.period_us * reservation.NS_PER_US,
        )
        if interval_s > 0:
            self.received_pps = used.net_rx_packets / interval_s
            self.sent_pps = used.net_tx_packets / interval_s
        if shown:
            self._observe_io(now_s, serving)

    def _observe_io(
        self, now_s: float, serving: Mapping[int, communication.ThreadUse]
    ) -> None:
        for tid in self._io.keys() - serving.keys():
            del self._io[tid]
        for tid, seen in serving.items():
            self._io.setdefault(
                tid, communication.Longest(self._window_s)
            ).observe(now_s, seen.burst_ns)
        self._busiest = max(
            serving, key=lambda tid: (serving[tid].wakeups, -tid), default=None
        )

    def io_burst_ns(self, tid: int) -> float:
        """Return the longest burst of an I/O thread in the window."""
        return self._io[tid].burst_ns if tid in self._io else 0.0

    def serving_held(self, io: applied.IoHolding | None) -> bool:
        """Return whether the I/O thread that serves most is reserved."""
        return (
            io is not None
            and self._busiest is not None
            and io.of(self._busiest) is not None
        )

    def finest(
        self,
        held: applied.Holding,
        io: applied.IoHolding | None,
        limits: granularity.Limits,
        headroom: float,
    ) -> Finest:
        """Return the finest granularities of the instance's vCPUs.

        Requests permit none finer than 1 unless the I/O thread that serves
        them can be divided too: dividing either alone does not reduce latency.
        """
        bound = granularity.finest(held.now, limits)
        if not self._load.known:
            # It keeps what an earlier agent, or process, had.
            return Finest(bound, held.granularity, 1)
        if io is None or self._busiest is None:
            return Finest(bound, 1, 1)
        serving = io.of(self._busiest)
        if serving is None:
            return Finest(bound, 1, 1)
        found = []
        for factor in (1.0, headroom):
            least_ns = factor * self.io_burst_ns(self._busiest)
            found.append(
                1
                if granularity.finest(serving, limits, least_ns) == 1
                else granularity.finest(
                    held.now, limits, factor * self.burst_ns
                )
            )
        return Finest(bound, *found)

    def io_parts(
        self,
        io: applied.IoHolding | None,
        most: int,
        limits: granularity.Limits,
        headroom: float,
    ) -> dict[int, int]:
        """Return the granularity of each I/O thread.

        :param most: the granularity of the vCPUs.
        """
        return {
            target.tid: min(
                most,
                granularity.finest(
                    reserved, limits, headroom * self.io_burst_ns(target.tid)
                ),
            )
            for target, reserved in (io.reservations if io else ())
        }

    def too_fine(
        self, io: applied.IoHolding | None, limits: granularity.Limits
    ) -> bool:
        """Return whether a part of an I/O thread is below its burst."""
        return any(
            reserved.granularity
            > granularity.finest(
                reserved, limits, self.io_burst_ns(target.tid)
            )
            for target, reserved in (io.reservations if io else ())
        )


def serving_tids(reading: readings.Reading) -> Collection[int]:
    """Return the threads whose sleeps are counted."""
    return [
        use.tid
        for use in reading.threads
        if use.role is readings.Role.VCPU or use.role in io_sizing.SERVING
    ]
