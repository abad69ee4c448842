# SPDX-License-Identifier: Apache-2.0

"""The policy over ten minutes of several kinds of instances.

The passes are made by models that are stated here, not recorded: requests
arrive at random (exponential intervals), each takes a fixed CPU time that
varies by a fifth, and a guest's timer wakes its vCPU 250 times a second.
"""

import random

from oslotest import base

from vsched_lib.model import communication
from vsched_lib.model import granularity
from vsched_lib.model import reservation

MS = 1_000_000
LIMITS = granularity.Limits(100_000, 2_500_000, 4_000_000)
RESERVED = reservation.Reservation(6_000, 20_000)
_TIMER_HZ, _TIMER_NS = 250, 20_000
_IO_NS = 100_000


class Instance:
    """One instance, second by second."""

    def __init__(self, uuid, seed):
        self.uuid = uuid
        self.chance = random.Random(seed)
        self.load = communication.Load(10.0, 10.0)
        self.granularity = 1

    def second(self, number):
        raise NotImplementedError

    def demand(self, number):
        self.load.observe(
            float(number),
            self.second(number),
            RESERVED.runtime_us * reservation.NS_PER_US,
        )
        return granularity.Demand(
            self.uuid,
            self.load.intensity,
            granularity.finest(RESERVED, LIMITS),
            granularity.finest(RESERVED, LIMITS, self.load.burst_ns),
            granularity.finest(RESERVED, LIMITS, 1.2 * self.load.burst_ns),
            2 * granularity.periods_per_s(RESERVED),
            self.granularity,
        )

    def seen(self, received, sent, run_ns, wakeups):
        return communication.Traffic(
            1.0,
            received,
            sent,
            [communication.ThreadUse(int(run_ns), 0, wakeups)],
            [
                communication.ThreadUse(
                    (received + sent) * _IO_NS, 0, received + sent
                )
            ],
        )


class Answers(Instance):
    """Answers requests.

    :param rate: requests a second.
    :param work_ms: CPU time of one.
    :param packets: in each direction, for one.
    """

    def __init__(self, uuid, seed, rate, work_ms, packets=1):
        super().__init__(uuid, seed)
        self.rate, self.work_ms, self.packets = rate, work_ms, packets

    def requests(self, number):
        left_s, count = self.chance.expovariate(self.rate), 0
        while left_s < 1:
            left_s += self.chance.expovariate(self.rate)
            count += 1
        return count

    def second(self, number):
        count = self.requests(number)
        run_ns = sum(
            self.work_ms * self.chance.uniform(0.8, 1.2) * MS
            for _ in range(count)
        )
        return self.seen(
            count * self.packets,
            count * self.packets,
            run_ns + _TIMER_HZ * _TIMER_NS,
            count + _TIMER_HZ,
        )


class Pauses(Answers):
    """Answers for four seconds, then has nothing to do for four."""

    def requests(self, number):
        return super().requests(number) if number % 8 < 4 else 0


class Rarely(Answers):
    """Answers for five seconds in each minute."""

    def requests(self, number):
        return super().requests(number) if number % 60 < 5 else 0


class Burns(Instance):
    """Computes, and sends itself packets all the time."""

    def __init__(self, uuid, seed, packets):
        super().__init__(uuid, seed)
        self.packets = packets

    def second(self, number):
        return self.seen(
            self.packets, self.packets, 300 * MS, self.chance.randrange(5, 30)
        )


class Streams(Instance):
    """Sends packets at a constant rate, unasked."""

    def second(self, number):
        return self.seen(2, 300, 300 * 0.2 * MS, 300 + _TIMER_HZ)


class TraceTestCase(base.BaseTestCase):
    def run_(self, *instances, cpus=2, seconds=600, **policy):
        """Return the granularities of each instance, second by second."""
        shaper = granularity.Shaper(granularity.Policy(**policy))
        bound = shaper._policy.added_periods * cpus
        found = {one.uuid: [] for one in instances}
        for number in range(seconds):
            demands = [one.demand(number) for one in instances]
            changes = shaper.decide(float(number), demands, cpus)
            for one in instances:
                one.granularity = changes.get(one.uuid, one.granularity)
                found[one.uuid].append(one.granularity)
            self.assertLessEqual(
                sum(
                    demand.added(one.granularity)
                    for demand, one in zip(demands, instances, strict=True)
                ),
                bound,
            )
        return found

    def changes(self, found):
        return sum(
            one != two for one, two in zip(found, found[1:], strict=False)
        )

    def test_short_requests(self):
        for packets in (1, 4):
            found = self.run_(Answers('a', 1, 50, 1.0, packets))['a']
            self.assertEqual({4}, set(found[5:]))

    def test_longer_requests(self):
        for seed in range(5):
            found = self.run_(Answers('a', seed, 50, 2.0))['a']
            self.assertEqual({2}, set(found[5:]))

    def test_requests_longer_than_half_of_a_runtime(self):
        found = self.run_(Answers('a', 1, 40, 4.0))['a']
        self.assertEqual({1}, set(found))

    def test_pauses_do_not_make_periods_flap(self):
        found = self.run_(Pauses('a', 1, 50, 1.0))['a']
        self.assertEqual({4}, set(found[5:]))

    def test_rare_requests_change_periods_twice_each_time(self):
        found = self.run_(Rarely('a', 1, 50, 1.0))['a']
        self.assertLessEqual(self.changes(found), 2 * 600 // 60)
        self.assertLess(found.count(4), 0.35 * len(found))

    def test_a_stream(self):
        found = self.run_(Streams('a', 1))['a']
        self.assertEqual({4}, set(found[5:]))

    def test_one_that_floods_itself_and_burns(self):
        found = self.run_(Burns('liar', 1, 100_000), Answers('a', 1, 50, 1.0))
        # It never waits: it is not divided, and takes nothing from the other.
        self.assertEqual({1}, set(found['liar']))
        self.assertEqual({4}, set(found['a'][5:]))

    def test_one_that_floods_itself_and_sleeps(self):
        """The costliest lie: it qualifies, and is ranked first."""
        others = [
            Answers('b%d' % number, number, 50, 1.0) for number in range(5)
        ]
        found = self.run_(
            Answers('liar', 1, 5_000, 0.01), *others, added_periods=300.0
        )
        # 600 added periods: everyone has a half before anyone has a quarter.
        for one in found.values():
            self.assertEqual({2}, set(one[10:]))

    def test_ranks_that_change_all_the_time(self):
        """More instances than the host's bound permits, equally busy."""
        instances = [
            Answers('a%d' % number, number, 50, 1.0) for number in range(12)
        ]
        found = self.run_(*instances, added_periods=300.0)
        total = sum(self.changes(one) for one in found.values())
        # Of 7200 decisions.
        self.assertLess(total, 12 * 600 / 10)
