# SPDX-License-Identifier: Apache-2.0

"""Ballooning's state of one instance."""

import collections
from collections.abc import Mapping
import dataclasses
import math

from vsched_agent.ballooning import base
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.model import balloon
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention

#: An offline vCPU's thread is almost idle; one that runs for a larger share of
#: the time is in use.
IN_USE_SHARE = 0.1
#: Stored readings of a progress counter.
_READINGS = 60
#: A counter is read this long after its sample.
_EARLY_S = 0.5


class Instance:
    """Samples and status of one instance.

    :param sample: the first one.
    :param thresholds: when a vCPU counts as contended.
    """

    def __init__(
        self, sample: base.Sample, thresholds: contention.Thresholds
    ) -> None:
        self.domain = sample.domain
        self.flavor = sample.flavor
        self.reserved = sample.reserved
        self.window = contention.Window(thresholds.samples)
        self.status = balloon_trial.BalloonStatus()
        self.record: base.Record | None = None
        #: Its work since a balloon shows its effect.
        self.trial_window = contention.Window(3600)
        self.counter: collections.deque[tuple[float, int]] = collections.deque(
            maxlen=_READINGS
        )
        #: An action is running.
        self.busy = False
        #: When a failed action is retried; None when none failed.
        self.retry_s: float | None = None
        #: Its guest agent has answered.
        self.reachable = False
        #: Number of probes so far.
        self.probes = 0
        #: vCPUs may have been taken without a record.
        self.orphan = False
        self.unexpected_online = False
        #: Binding its threads has not failed.
        self.bindable = True
        #: When its progress counter is read next.
        self.counter_s = 0.0
        #: A decision follows as soon as its counter yields a rate.
        self.decide_early = False
        #: Why it must get all of its vCPUs back, or None.
        self.return_cause: str | None = None
        self.outcome = balloon_trial.Outcome.UNDONE
        #: The operator's request.
        self.order: balloons.BalloonOrder | None = None
        #: Why the request is refused, or None.
        self.refused: errors.Refused | None = None
        #: When the request is retried.
        self.order_retry_s = 0.0
        self._yields: Mapping[int, int] = {}

    @property
    def uuid(self) -> str:
        """The instance's UUID."""
        return self.domain.uuid

    @property
    def indexes(self) -> tuple[int, ...]:
        """The vCPUs that it is configured for."""
        return tuple(vcpu.index for vcpu in self.domain.vcpus)

    @property
    def vcpus(self) -> int:
        """How many it is configured for."""
        return len(self.indexes)

    @property
    def altered(self) -> bool:
        """Whether it got other vCPUs than it had when some were taken."""
        if self.record is None:
            return False
        found = {vcpu.index for vcpu in self.domain.vcpus}
        return found != set(self.record.configured)

    @property
    def online(self) -> int:
        """The number of vCPUs that it uses."""
        return len(self.record.online) if self.record else self.vcpus

    @property
    def cpus(self) -> frozenset[int] | None:
        """Host CPUs that its definition pins it to; None for all."""
        if any(vcpu.pinned_cpus is None for vcpu in self.domain.vcpus):
            return None
        return frozenset().union(
            *(vcpu.pinned_cpus or () for vcpu in self.domain.vcpus)
        )

    @property
    def pinned(self) -> bool:
        """Whether its definition pins vCPUs individually."""
        return len({vcpu.pinned_cpus for vcpu in self.domain.vcpus}) > 1 or (
            len(self.cpus or ()) == 1
        )

    @property
    def floor(self) -> int:
        """The fewest vCPUs that can use its whole reservation."""
        least = min(self.flavor.min_vcpus, self.vcpus)
        if self.reserved is None:
            return least
        return max(
            least, min(self.vcpus, balloon.fewest(self.reserved, self.vcpus))
        )

    @property
    def guest_answers(self) -> bool | None:
        """Whether its guest agent answers; None before the first probe."""
        if self.reachable:
            return True
        return False if self.probes else None

    @property
    def target_vcpus(self) -> int | None:
        """The number of vCPUs that an operator requested, unless refused."""
        if self.order is None or self.refused is not None:
            return None
        return self.order.target_vcpus

    @property
    def frozen(self) -> bool:
        """Whether an operator froze it."""
        return self.order is not None and self.order.frozen

    def add(
        self,
        sample: base.Sample,
        yields: Mapping[int, int] | None,
        effective: bool,
    ) -> None:
        """Add a sample.

        :param yields: by vCPU, counted since the instance's start.
        :param effective: whether it shows a balloon's effect.
        """
        self.domain, self.flavor = sample.domain, sample.flavor
        self.reserved = sample.reserved
        uses = dict(sample.uses)
        if yields is not None:
            for index in uses.keys() & yields.keys() & self._yields.keys():
                uses[index] = dataclasses.replace(
                    uses[index],
                    yields=max(0, yields[index] - self._yields[index]),
                )
            self._yields = yields
        if self.record is not None:
            online = set(self.record.online)
            self.unexpected_online = effective and any(
                use.run_ns > IN_USE_SHARE * sample.interval_ns
                for index, use in uses.items()
                if index not in online
            )
            uses = {
                index: use for index, use in uses.items() if index in online
            }
        self.window.add(sample.interval_ns, uses)
        if self.record is not None and effective:
            self.trial_window.add(sample.interval_ns, uses)

    def reset_windows(self) -> None:
        """Start new windows after the online vCPUs changed."""
        self.window.clear()
        self.trial_window.clear()

    def work(
        self, window: contention.Window, since_s: float = -math.inf
    ) -> contention.Work:
        """Return its work in a window, with its progress rate if known.

        :param since_s: older readings of the counter are ignored.
        """
        return dataclasses.replace(window.work(), progress=self._rate(since_s))

    def readings(self, since_s: float) -> list[tuple[float, int]]:
        """Return its counter's readings since the last reset."""
        found: list[tuple[float, int]] = []
        for at_s, value in self.counter:
            if found and value < found[-1][1]:
                found = []
            if at_s >= since_s:
                found.append((at_s, value))
        return found

    def rate_expected(self, now_s: float) -> bool:
        """Whether its counter will yield a rate soon."""
        readings = len(self.readings(self.window_start_s(now_s)))
        return readings == 1 or (readings == 0 and math.isinf(self.counter_s))

    def window_start_s(self, now_s: float) -> float:
        """Return the approximate start of its window."""
        return now_s - self.window.interval_ns / 1e9 - _EARLY_S

    def _rate(self, since_s: float) -> float | None:
        readings = self.readings(since_s)
        if len(readings) < 2 or readings[-1][0] <= readings[0][0]:
            return None
        return (readings[-1][1] - readings[0][1]) / (
            readings[-1][0] - readings[0][0]
        )

    def share(self, takes_part: bool) -> balloon.Share:
        """Return its share in the division of CPUs."""
        target_vcpus = self.target_vcpus
        if takes_part and target_vcpus is not None:
            return balloon.Share(
                self.uuid,
                target_vcpus,
                self.flavor.weight,
                target_vcpus,
                self.cpus,
            )
        if not takes_part and self.record is not None and self.record.pins:
            # Its CPUs are fixed.
            return balloon.Share(
                self.uuid,
                self.online,
                self.flavor.weight,
                self.online,
                frozenset(self.record.pins.values()),
                len(self.record.pins),
            )
        return balloon.Share(
            self.uuid,
            self.vcpus,
            self.flavor.weight,
            self.floor,
            self.cpus,
            None
            if takes_part
            else math.ceil(min(self.window.work().runnable, self.online)),
        )
