# SPDX-License-Identifier: Apache-2.0

"""Whether a finer period shortened what an instance's packets wait.

The CPU time of a request is an estimate: where a request takes several packets
or sleeps in between, a part of the runtime may end in the middle of it, and
each request waits for another period. So a division is tried: the time that
the threads which handle packets were runnable and did not run, a used-up
runtime included, is compared for each packet before and after it.
"""

import collections
import dataclasses
import typing as ty

#: No finer division than this is known: there is no limit.
UNLIMITED = 1 << 30


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """How a division is judged.

    :param window_s: length of the window before it that counts.
    :param trial_s: how long after it is judged, at the earliest.
    :param settle_s: time after a change that does not count: the threads
        still have the debt of longer periods.
    :param least_packets: packets on either side without which nothing is
        judged.
    :param gain: part of the wait that has to disappear.
    :param negligible: wait per packet, as a part of the undivided period,
        below which a division is kept: there is nothing to gain.
    :param retry_s: for how long a division that did not help is not tried
        again; twice as long each time.
    :param most_retry_s: the longest of these times.
    """

    window_s: float = 10.0
    trial_s: float = 4.0
    settle_s: float = 1.0
    least_packets: int = 30
    gain: float = 0.1
    negligible: float = 0.005
    retry_s: float = 60.0
    most_retry_s: float = 3600.0


class Outcome(ty.NamedTuple):
    """What a trial showed, in nanoseconds of wait for each packet.

    :param granularity: that was tried.
    :param before_ns: with the coarser division.
    :param after_ns: with the finer one.
    """

    granularity: int
    before_ns: float
    after_ns: float


class _Interval(ty.NamedTuple):
    end_s: float
    packets: int
    wait_ns: int


class WaitTrial:
    """Tries the divisions of one instance.

    :param rules: how they are judged.
    """

    def __init__(self, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        self._seen: collections.deque[_Interval] = collections.deque()
        self._granularity: int | None = None
        self._since_s = 0.0
        # What is compared with: wait per packet, and with which granularity.
        self._before: tuple[int, float] | None = None
        self._failures = 0
        self._limit = UNLIMITED
        self._limited_until_s = 0.0
        #: The last trial that was judged and failed.
        self.failed: Outcome | None = None

    def observe(
        self,
        now_s: float,
        packets: int,
        wait_ns: int,
        granularity: int,
        period_ns: int,
    ) -> None:
        """Take one interval into account.

        :param now_s: its end.
        :param packets: received and sent.
        :param wait_ns: time that the threads were runnable and did not run.
        :param granularity: that they had in it.
        :param period_ns: of the undivided reservation.
        """
        if granularity != self._granularity:
            self._change(now_s, granularity)
        if now_s < self._since_s + self._rules.settle_s or not packets:
            return
        self._seen.append(_Interval(now_s, packets, wait_ns))
        if self._before is None:
            while self._seen[0].end_s <= now_s - self._rules.window_s:
                self._seen.popleft()
        elif now_s >= self._since_s + self._rules.trial_s:
            self._judge(now_s, granularity, period_ns)

    def limit(self, now_s: float) -> int:
        """Return the finest granularity that may be applied now."""
        return self._limit if now_s < self._limited_until_s else UNLIMITED

    def _change(self, now_s: float, granularity: int) -> None:
        finer = (
            self._granularity is not None and granularity > self._granularity
        )
        mean = self._mean_ns()
        self._before = (
            (self._granularity, mean)
            if finer and mean is not None and self._granularity is not None
            else None
        )
        # The first interval of all was with the same granularity before.
        self._since_s = (
            now_s - self._rules.settle_s
            if self._granularity is None
            else now_s
        )
        self._granularity = granularity
        self._seen.clear()

    def _mean_ns(self) -> float | None:
        packets = sum(one.packets for one in self._seen)
        if packets < self._rules.least_packets:
            return None
        return sum(one.wait_ns for one in self._seen) / packets

    def _judge(self, now_s: float, granularity: int, period_ns: int) -> None:
        after_ns = self._mean_ns()
        if after_ns is None or self._before is None:
            return
        coarser, before_ns = self._before
        self._before = None
        if (
            after_ns <= self._rules.negligible * period_ns
            or after_ns <= (1 - self._rules.gain) * before_ns
        ):
            self._failures, self.failed = 0, None
            return
        self.failed = Outcome(granularity, before_ns, after_ns)
        self._limit = coarser
        self._limited_until_s = now_s + min(
            self._rules.most_retry_s,
            self._rules.retry_s * (1 << min(self._failures, 16)),
        )
        self._failures += 1
