# SPDX-License-Identifier: Apache-2.0

"""What instances communicate, from the readings of accounting."""

from collections.abc import Collection
from collections.abc import Mapping
import typing as ty

from vsched_agent.accounting import base as readings
from vsched_agent.communication import serving
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
        self._load = communication.Load(window_s, least_pps)
        #: Its I/O threads.
        self.io = serving.ServingThreads(window_s)
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
        runtime_ns = now.runtime_us * reservation.NS_PER_US
        vcpus, io = [], {}
        for use in reading.threads:
            seen = communication.ThreadUse(
                use.run_ns,
                use.wait_ns,
                min(use.timeslices, sleeps.get(use.tid, use.timeslices)),
            )
            if use.role is readings.Role.VCPU:
                vcpus.append(seen)
            elif use.role in io_sizing.SERVING:
                io[use.tid] = seen
        shown = self._load.observe(
            now_s,
            communication.Traffic(
                interval_s,
                used.net_rx_packets,
                used.net_tx_packets,
                vcpus,
                list(io.values()),
            ),
            runtime_ns,
        )
        self.trial.observe(
            now_s,
            used.net_rx_packets + used.net_tx_packets,
            sum(
                one.wait_ns
                for one in (
                    *communication.waiting(vcpus, runtime_ns),
                    *io.values(),
                )
            ),
            now.granularity,
            now.period_us * reservation.NS_PER_US,
        )
        if interval_s > 0:
            self.received_pps = used.net_rx_packets / interval_s
            self.sent_pps = used.net_tx_packets / interval_s
        if shown:
            self.io.observe(
                now_s, io, used.net_rx_packets, used.net_tx_packets
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
        return Finest(
            bound,
            *(
                granularity.finest(held.now, limits, factor * self.burst_ns)
                if self.io.divisible(io, limits, factor)
                else 1
                for factor in (1.0, headroom)
            ),
        )


def serving_tids(reading: readings.Reading) -> Collection[int]:
    """Return the threads whose sleeps are counted."""
    return [
        use.tid
        for use in reading.threads
        if use.role is readings.Role.VCPU or use.role in io_sizing.SERVING
    ]
