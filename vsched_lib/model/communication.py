# SPDX-License-Identifier: Apache-2.0

"""What instances communicate, and what a request costs them.

The network intensity of an instance is the rate of the packets that it
received, of those that wait for it, and of those that it will probably send,
by last value.
"""

import collections
from collections.abc import Sequence
import typing as ty

_NS_PER_S = 1_000_000_000


class Anticipation:
    """Predicts what an instance sends next, by last value.

    The interval and the number of packets of the last transmission are those
    of the next one.
    """

    def __init__(self) -> None:
        self._last_s: float | None = None
        self._gap_s = 0.0
        self._count = 0

    def observe(self, now_s: float, sent: int) -> None:
        """Take one interval into account.

        :param now_s: its end.
        :param sent: packets in it.
        """
        if not sent:
            return
        if self._last_s is not None:
            self._gap_s = now_s - self._last_s
        self._last_s, self._count = now_s, sent

    def expected(self, now_s: float, interval_s: float) -> int:
        """Return the packets that are expected in the next interval.

        :param interval_s: its length.
        """
        if self._last_s is None or not self._gap_s:
            return 0
        due_s = self._last_s + self._gap_s
        # Intervals are not exactly of one length.
        return self._count if abs(due_s - now_s) <= 1.5 * interval_s else 0


class ThreadUse(ty.NamedTuple):
    """What one thread did in an interval.

    :param run_ns: time that it ran.
    :param wait_ns: time that it was runnable and did not run.
    :param wakeups: how often it began to run after it had slept.
    """

    run_ns: int
    wait_ns: int
    wakeups: int

    @property
    def burst_ns(self) -> float:
        """Return the CPU time between two sleeps."""
        return self.run_ns / max(1, self.wakeups)


class Traffic(ty.NamedTuple):
    """What an instance and its threads did in an interval.

    :param received: packets that the guest received; likewise sent.
    :param vcpus: its vCPU threads.
    :param io: the host's threads that serve its I/O.
    """

    interval_s: float
    received: int
    sent: int
    vcpus: Sequence[ThreadUse]
    io: Sequence[ThreadUse]


class Longest:
    """The longest burst in a window.

    :param window_s: its length.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        # (end of the interval, burst) in the window.
        self._seen: collections.deque[tuple[float, float]] = (
            collections.deque()
        )

    def observe(self, now_s: float, burst_ns: float) -> None:
        """Take one interval into account.

        :param now_s: its end.
        """
        self._seen.append((now_s, burst_ns))
        while self._seen[0][0] <= now_s - self._window_s:
            self._seen.popleft()

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def burst_ns(self) -> float:
        """Return the longest burst; 0 when nothing was observed."""
        return max((burst for _, burst in self._seen), default=0.0)


class Load:
    """The network intensity and the requests of one instance.

    :param window_s: length of the window whose longest request counts.
    :param least_pps: packets per second below which an interval shows
        nothing of requests: most of its CPU time is for something else.
    """

    def __init__(self, window_s: float, least_pps: float) -> None:
        self._least_pps = least_pps
        self._anticipation = Anticipation()
        self._requests = Longest(window_s)
        #: Packets per second: received, waiting and expected to be sent.
        self.intensity = 0.0

    def observe(self, now_s: float, seen: Traffic, runtime_ns: int) -> bool:
        """Take one interval into account.

        :param now_s: its end.
        :param runtime_ns: of the undivided reservation of a vCPU.
        :returns: whether it shows what requests take.
        """
        if seen.interval_s <= 0:
            return False
        self._anticipation.observe(now_s, seen.sent)
        self.intensity = (
            seen.received
            + pending(seen)
            + self._anticipation.expected(now_s, seen.interval_s)
        ) / seen.interval_s
        if max(seen.received, seen.sent) < self._least_pps * seen.interval_s:
            return False
        self._requests.observe(now_s, request_ns(seen, runtime_ns))
        return True

    @property
    def known(self) -> bool:
        """Return whether any interval has shown what requests take."""
        return bool(self._requests)

    @property
    def burst_ns(self) -> float:
        """Return the CPU time of a request, the longest of the window."""
        return self._requests.burst_ns


def pending(seen: Traffic) -> float:
    """Return how many packets waited for the instance on average.

    The kernel does not show the length of a tap device's queue. By Little's
    law it is the rate of packets times the time that a packet waits, which is
    what the threads that take it wait after a wakeup.
    """
    wait_s = (
        sum(
            use.wait_ns / max(1, use.wakeups)
            for threads in (seen.io, seen.vcpus)
            for use in _busiest(threads)
        )
        / _NS_PER_S
    )
    return seen.received * min(
        1.0, wait_s / seen.interval_s if seen.interval_s else 0.0
    )


def _busiest(threads: Sequence[ThreadUse]) -> Sequence[ThreadUse]:
    return sorted(threads, key=lambda use: use.wakeups)[-1:]


def requests(received: int, sent: int) -> float:
    """Return how many requests packets are, estimated from below.

    A stream is acknowledged every other packet, if at all.

    :returns: at least 1.
    """
    return max(1.0, received, sent / 2)


def waiting(
    vcpus: Sequence[ThreadUse], runtime_ns: int
) -> Sequence[ThreadUse]:
    """Return the vCPUs that wait for something between two bursts.

    One that runs longer than its runtime between two sleeps computes. It
    serves no requests, and how long it was runnable without running is not
    the wait of any packet.

    :param runtime_ns: of the undivided reservation of a vCPU.
    """
    return [use for use in vcpus if use.burst_ns <= runtime_ns]


def request_ns(seen: Traffic, runtime_ns: int) -> float:
    """Return the CPU time of one request, estimated from above.

    Between requests a guest's timer causes short bursts, and a request may
    take several packets or sleep. The estimate is the larger one of CPU time
    per wakeup and per packet.

    :returns: infinity when no vCPU waits for anything.
    """
    serving = waiting(seen.vcpus, runtime_ns)
    if not any(use.wakeups for use in serving):
        return float('inf')
    return max(
        *(use.burst_ns for use in serving),
        sum(use.run_ns for use in serving)
        / requests(seen.received, seen.sent),
    )


def io_request_ns(use: ThreadUse, received: int, sent: int) -> float:
    """Return the CPU time of an I/O thread for one request, from above.

    A request wakes such a thread several times: for the packet that arrives,
    for the guest's notifications, and for the answer.
    """
    return max(use.burst_ns, use.run_ns / requests(received, sent))
