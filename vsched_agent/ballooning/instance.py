# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One instance as ballooning sees it."""

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

#: An offline vCPU's thread does next to nothing; one that runs for more of
#: the time than this is in use.
STRAY_SHARE = 0.1
#: Readings of a progress counter that are kept.
_READINGS = 60
#: A reading is taken a little later than the sample that it goes with.
_EARLY_S = 0.5


class Instance:
    """Samples of one instance, and how it stands.

    :param sample: the first one.
    :param thresholds: when a vCPU counts as contended.
    """

    def __init__(self, sample: base.Sample,
                 thresholds: contention.Thresholds) -> None:
        self.domain = sample.domain
        self.wishes = sample.wishes
        self.promise = sample.promise
        self.window = contention.Window(thresholds.samples)
        self.standing = balloon_trial.Standing()
        self.record: base.Record | None = None
        #: What it did since its balloon has settled.
        self.since = contention.Window(3600)
        self.counter: collections.deque[tuple[float, int]] = (
            collections.deque(maxlen=_READINGS))
        #: A step is under way.
        self.busy = False
        #: When a step that failed is tried again; None: nothing failed.
        self.retry_s: float | None = None
        #: Its guest has been asked since it was first seen.
        self.met = False
        #: It does not answer, and its vCPUs can be unplugged.
        self.unplug = False
        #: How often that was tried.
        self.greetings = 0
        self.strayed = False
        #: Its threads can be bound, as far as is known.
        self.bindable = True
        #: When its progress counter is read next.
        self.counter_s = 0.0
        #: It is to be decided about as soon as its counter tells a rate.
        self.eager = False
        #: It has to have all of its vCPUs again, and why.
        self.leave: str | None = None
        self.outcome = balloon_trial.Outcome.UNDONE
        #: What an operator wants of it.
        self.order: balloons.BalloonOrder | None = None
        #: Why that is not done, if so.
        self.refused: errors.Refused | None = None
        #: When it is tried again.
        self.obey_s = 0.0
        self._yields: Mapping[int, int] = {}

    @property
    def uuid(self) -> str:
        """Whose it is."""
        return self.domain.uuid

    @property
    def indexes(self) -> tuple[int, ...]:
        """The vCPUs that it is configured for."""
        if self.record is not None and self.record.unplugged:
            return self.record.configured
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
        if self.record.unplugged:
            return bool(found - set(self.record.configured) or
                        set(self.record.online) - found)
        return found != set(self.record.configured)

    @property
    def online(self) -> int:
        """How many it has online."""
        return len(self.record.online) if self.record else self.vcpus

    @property
    def cpus(self) -> frozenset[int] | None:
        """Host CPUs that its definition confines it to; None for all."""
        if any(vcpu.pinned_cpus is None for vcpu in self.domain.vcpus):
            return None
        return frozenset().union(*(
            vcpu.pinned_cpus or () for vcpu in self.domain.vcpus))

    @property
    def pinned(self) -> bool:
        """Whether its vCPUs have places of their own."""
        return len({vcpu.pinned_cpus for vcpu in self.domain.vcpus}) > 1 or (
            len(self.cpus or ()) == 1)

    @property
    def floor(self) -> int:
        """The fewest vCPUs that can also use up what it was promised."""
        least = min(self.wishes.min_vcpus, self.vcpus)
        if self.promise is None:
            return least
        return max(least, min(
            self.vcpus, balloon.fewest(self.promise, self.vcpus)))

    @property
    def answers(self) -> bool | None:
        """Whether its guest can be told; None while nobody has tried."""
        if self.met:
            return True
        return False if self.greetings else None

    @property
    def target_vcpus(self) -> int | None:
        """How many vCPUs an operator wants it to use, if that can be."""
        if self.order is None or self.refused is not None:
            return None
        return self.order.target_vcpus

    @property
    def frozen(self) -> bool:
        """Whether an operator wants it left as it is."""
        return self.order is not None and self.order.frozen

    def add(self, sample: base.Sample, yields: Mapping[int, int] | None,
            settled: bool) -> None:
        """Take in a sample.

        :param yields: by vCPU, counted since the instance's start.
        :param settled: whether a balloon's effect is to be seen in it.
        """
        self.domain, self.wishes = sample.domain, sample.wishes
        self.promise = sample.promise
        uses = dict(sample.uses)
        if yields is not None:
            for index in uses.keys() & yields.keys() & self._yields.keys():
                uses[index] = dataclasses.replace(uses[index], yields=max(
                    0, yields[index] - self._yields[index]))
            self._yields = yields
        if self.record is not None:
            online = set(self.record.online)
            self.strayed = settled and any(
                use.run_ns > STRAY_SHARE * sample.interval_ns
                for index, use in uses.items() if index not in online)
            uses = {index: use for index, use in uses.items()
                    if index in online}
        self.window.add(sample.interval_ns, uses)
        if self.record is not None and settled:
            self.since.add(sample.interval_ns, uses)

    def begin(self) -> None:
        """Other vCPUs are online from now on."""
        self.window.clear()
        self.since.clear()

    def work(self, window: contention.Window,
             since_s: float = -math.inf) -> contention.Work:
        """What it did, with its own counter where it has one.

        :param since_s: older readings of the counter don't count.
        """
        return dataclasses.replace(
            window.work(), progress=self._rate(since_s))

    def readings(self, since_s: float) -> list[tuple[float, int]]:
        """What its counter was, since it was last set back."""
        found: list[tuple[float, int]] = []
        for at_s, value in self.counter:
            if found and value < found[-1][1]:
                found = []
            if at_s >= since_s:
                found.append((at_s, value))
        return found

    def counts(self, now_s: float) -> bool:
        """Whether its counter is about to tell a rate, but has not yet."""
        told = len(self.readings(self.seen_since_s(now_s)))
        return told == 1 or (told == 0 and math.isinf(self.counter_s))

    def seen_since_s(self, now_s: float) -> float:
        """When what is in its window began, about."""
        return now_s - self.window.interval_ns / 1e9 - _EARLY_S

    def _rate(self, since_s: float) -> float | None:
        told = self.readings(since_s)
        if len(told) < 2 or told[-1][0] <= told[0][0]:
            return None
        return (told[-1][1] - told[0][1]) / (told[-1][0] - told[0][0])

    def share(self, takes_part: bool) -> balloon.Share:
        """What it wants when CPUs are divided."""
        target_vcpus = self.target_vcpus
        if takes_part and target_vcpus is not None:
            return balloon.Share(
                self.uuid, target_vcpus, self.wishes.weight, target_vcpus,
                self.cpus)
        if not takes_part and self.record is not None and self.record.pins:
            # Nobody may move it.
            return balloon.Share(
                self.uuid, self.online, self.wishes.weight, self.online,
                frozenset(self.record.pins.values()),
                len(self.record.pins))
        return balloon.Share(
            self.uuid, self.vcpus, self.wishes.weight, self.floor, self.cpus,
            None if takes_part else math.ceil(
                min(self.window.work().runnable, self.online)))
