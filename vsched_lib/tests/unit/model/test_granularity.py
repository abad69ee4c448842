# SPDX-License-Identifier: Apache-2.0

"""Periods are divided where that helps, and never at others' expense."""

from fractions import Fraction
import heapq

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import granularity
from vsched_lib.model import reservation

HOST = granularity.Limits(100_000, 2_500_000, 4_000_000)
US = 1_000

reservations = st.integers(100, 4_194_304).flatmap(
    lambda period_us: st.builds(
        reservation.Reservation, st.integers(2, period_us), st.just(period_us)
    )
)
limits = st.builds(
    granularity.Limits,
    st.integers(1_024, 5_000_000),
    st.integers(100_000, 20_000_000),
    st.sampled_from((0, 1_000_000, 4_000_000, 10_000_000)),
    st.sampled_from((1, 1_000)),
)


def divided(reserved, parts):
    return reservation.Reservation(
        reserved.runtime_us, reserved.period_us, granularity=parts
    )


class ReservationTestCase(base.BaseTestCase):
    def test_other_granularities(self):
        for parts in (0, 3, 16, -1, 1.5, None, '2'):
            problem = self.assertRaises(
                reservation.InvalidReservation,
                reservation.Reservation,
                1_000,
                20_000,
                granularity=parts,
            )
            self.assertEqual('granularity', problem.field)

    @hypothesis.given(reservations, st.sampled_from(granularity.GRANULARITIES))
    def test_the_bandwidth_is_that_of_the_whole(self, reserved, parts):
        part = divided(reserved, parts)
        runtime_ns, period_ns = part.divided_ns
        # Without a remainder, so that no nanosecond is gained or lost.
        self.assertEqual(reserved.runtime_us * US, runtime_ns * parts)
        self.assertEqual(reserved.period_us * US, period_ns * parts)
        self.assertEqual(
            reservation.kernel_bandwidth(*reserved.divided_ns),
            reservation.kernel_bandwidth(runtime_ns, period_ns),
        )
        self.assertEqual(reserved.utilisation, part.utilisation)


class FinestTestCase(base.BaseTestCase):
    def finest(self, runtime_us, period_us, least_us=0, limits=HOST):
        return granularity.finest(
            reservation.Reservation(runtime_us, period_us),
            limits,
            least_us * US,
        )

    def test_not_shorter_than_the_tick(self):
        self.assertEqual(4, self.finest(6_000, 20_000))
        self.assertEqual(8, self.finest(30_000, 100_000))
        self.assertEqual(1, self.finest(1_000, 4_000))
        self.assertEqual(2, self.finest(2_000, 8_000))

    def test_not_shorter_than_the_option(self):
        fine = granularity.Limits(100_000, 2_500_000, 1_000_000)
        self.assertEqual(8, self.finest(6_000, 20_000, limits=fine))
        coarse = granularity.Limits(100_000, 10_000_000, 1_000_000)
        self.assertEqual(2, self.finest(6_000, 20_000, limits=coarse))

    def test_not_below_the_request(self):
        # Measured: 0.8 of 4 ms is worse than 4 of 20 ms for 1 ms of work.
        self.assertEqual(2, self.finest(4_000, 20_000, 1_200))
        self.assertEqual(4, self.finest(4_000, 20_000, 1_000))
        self.assertEqual(2, self.finest(6_000, 20_000, 2_100))
        self.assertEqual(1, self.finest(6_000, 20_000, 3_001))
        self.assertEqual(1, self.finest(6_000, 20_000, float('inf')))

    def test_not_below_the_smallest_runtime(self):
        self.assertEqual(1, self.finest(150, 20_000))
        self.assertEqual(2, self.finest(200, 20_000))

    def test_whole_steps_only(self):
        # Xen takes microseconds.
        steps = granularity.Limits(step_ns=1_000)
        self.assertEqual(8, self.finest(4_000, 20_000, limits=steps))
        self.assertEqual(2, self.finest(4_002, 20_000, limits=steps))
        self.assertEqual(1, self.finest(4_001, 20_000, limits=steps))

    def test_no_part_builds_up_debt(self):
        # A whole runtime of a tick owes nothing; a part would owe 2 s.
        self.assertEqual(1, self.finest(4_000, 2_000_000))
        self.assertEqual(8, self.finest(32_000, 2_000_000))

    @hypothesis.given(reservations, limits, st.integers(0, 10_000_000))
    def test_always_within_the_limits(self, reserved, bounds, least_ns):
        parts = granularity.finest(reserved, bounds, least_ns)
        self.assertIn(parts, granularity.GRANULARITIES)
        if parts == 1:
            return
        runtime_ns, period_ns = divided(reserved, parts).divided_ns
        self.assertGreaterEqual(runtime_ns, bounds.runtime_ns)
        self.assertGreaterEqual(runtime_ns, least_ns)
        self.assertGreaterEqual(period_ns, bounds.period_ns)
        self.assertGreaterEqual(period_ns, bounds.tick_ns)
        self.assertEqual(0, runtime_ns % bounds.step_ns)
        if runtime_ns < bounds.tick_ns:
            self.assertLessEqual(
                Fraction(bounds.tick_ns, runtime_ns) * period_ns,
                reservation.MAX_DEBT_US * US,
            )

    @hypothesis.given(reservations, limits, st.integers(0, 10_000_000))
    def test_longer_requests_are_never_divided_finer(
        self, reserved, bounds, least_ns
    ):
        self.assertGreaterEqual(
            granularity.finest(reserved, bounds, least_ns),
            granularity.finest(reserved, bounds, 2 * least_ns),
        )


class PolicyTestCase(base.BaseTestCase):
    def test_figures_that_make_no_sense(self):
        for fields in (
            {'headroom': 0.9},
            {'least_pps': -1},
            {'rise_s': -1},
            {'hold_s': -0.1},
            {'added_periods': -1},
        ):
            self.assertRaises(ValueError, granularity.Policy, **fields)


def demand(uuid='a', intensity=50.0, finest=4, has=1, **fields):
    return granularity.Demand(
        **{
            'uuid': uuid,
            'intensity': intensity,
            'bound': finest,
            'stay': finest,
            'rise': finest,
            'periods_s': 100.0,
            'granularity': has,
            **fields,
        }
    )


demands = st.lists(
    st.builds(
        granularity.Demand,
        st.text('abcdefgh', min_size=1, max_size=4),
        st.floats(0, 1e6),
        st.sampled_from(granularity.GRANULARITIES),
        st.sampled_from(granularity.GRANULARITIES),
        st.sampled_from(granularity.GRANULARITIES),
        st.floats(1, 10_000),
        st.sampled_from(granularity.GRANULARITIES),
    ),
    max_size=12,
    unique_by=lambda one: one.uuid,
)


class DistributeTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.policy = granularity.Policy(least_pps=5, added_periods=300)

    def distribute(self, *found, cpus=2):
        return granularity.distribute(self.policy, found, cpus)

    def test_who_does_not_communicate_has_whole_periods(self):
        self.assertEqual({'a': 1}, self.distribute(demand(intensity=4.9)))
        self.assertEqual({'a': 4}, self.distribute(demand(intensity=5)))

    def test_the_most_intensive_first(self):
        # 600 periods a second; 4 costs 300, 8 would cost 700.
        self.assertEqual(
            {'a': 2, 'b': 4, 'c': 2},
            self.distribute(
                demand('a', 10), demand('b', 30, 8), demand('c', 20)
            ),
        )

    def test_one_that_floods_itself_leaves_the_others_their_first_half(self):
        found = self.distribute(
            demand('liar', 1e9, 8),
            *(demand('b%d' % number, 10, 8) for number in range(4)),
        )
        self.assertEqual({2}, {found['b%d' % number] for number in range(4)})

    @hypothesis.given(demands, st.floats(0, 1e5), st.integers(1, 64))
    def test_never_above_any_bound(self, found, added, cpus):
        policy = granularity.Policy(added_periods=added)
        given = granularity.distribute(policy, found, cpus)
        self.assertEqual({one.uuid for one in found}, set(given))
        self.assertLessEqual(
            sum(one.added(given[one.uuid]) for one in found),
            added * cpus * (1 + 1e-9),
        )
        for one in found:
            self.assertLessEqual(given[one.uuid], one.bound)
            if given[one.uuid] > 1:
                self.assertGreaterEqual(one.intensity, policy.least_pps)


class ShaperTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.policy = granularity.Policy(
            least_pps=5, rise_s=2, hold_s=10, added_periods=300
        )
        self.shaper = granularity.Shaper(self.policy)
        self.now_s = 0.0
        self.has = {}

    def passes(self, count, *found, cpus=2):
        """Run passes of a second; returns the changes with their times."""
        changes = []
        for _ in range(count):
            self.now_s += 1
            for uuid, parts in self.shaper.decide(
                self.now_s,
                [
                    one._replace(granularity=self.has.get(one.uuid, 1))
                    for one in found
                ],
                cpus,
            ).items():
                self.has[uuid] = parts
                changes.append((self.now_s, uuid, parts))
        return changes

    def test_rises_after_a_while_and_stays(self):
        self.assertEqual([(3.0, 'a', 4)], self.passes(100, demand()))

    def test_a_moment_of_traffic_changes_nothing(self):
        for _ in range(10):
            self.assertEqual([], self.passes(2, demand()))
            self.assertEqual([], self.passes(1, demand(intensity=0)))

    def test_a_moment_without_traffic_changes_nothing(self):
        self.passes(5, demand())
        for _ in range(10):
            self.assertEqual([], self.passes(9, demand(intensity=0)))
            self.assertEqual([], self.passes(1, demand()))

    def test_whole_again_after_the_traffic(self):
        self.passes(5, demand())
        self.assertEqual(
            [(16.0, 'a', 1)], self.passes(30, demand(intensity=0))
        )

    def test_a_longer_request_is_served_soon(self):
        self.passes(5, demand())
        self.assertEqual(
            [(8.0, 'a', 2)], self.passes(9, demand(stay=2, rise=2))
        )
        # And no finer division follows at once.
        changes = self.passes(20, demand())
        self.assertEqual([(18.0, 'a', 4)], changes)

    def test_headroom_is_needed_to_rise_and_not_to_stay(self):
        self.assertEqual(
            [(3.0, 'a', 2)], self.passes(9, demand(stay=4, rise=2))
        )
        self.has = {'a': 4}
        self.assertEqual([], self.passes(30, demand(stay=4, rise=2)))

    def test_a_smaller_reservation_at_once(self):
        self.passes(5, demand())
        self.assertEqual([(6.0, 'a', 2)], self.passes(1, demand(finest=2)))

    def test_one_displaced_by_a_more_intensive_one_keeps_it_for_a_while(self):
        self.passes(5, demand('a', 10))
        self.assertEqual({'a': 4}, self.has)
        more = demand('a', 10), demand('b', 20), demand('c', 30)
        changes = self.passes(30, *more)
        # 600 periods are permitted, and 'a' has 300 of them.
        self.assertEqual((8.0, 'c', 4), changes[0])
        self.assertEqual({'a': 2, 'b': 2, 'c': 4}, self.has)
        self.assertIn((16.0, 'a', 2), changes)
        self.assertEqual([], self.passes(60, *more))

    def test_forgotten_instances_start_anew(self):
        self.passes(2, demand())
        self.shaper.forget('a')
        self.assertEqual([], self.passes(2, demand()))

    @hypothesis.given(
        st.lists(
            st.tuples(
                st.floats(0, 1e4),
                st.sampled_from(granularity.GRANULARITIES),
                st.floats(0, 1e4),
                st.sampled_from(granularity.GRANULARITIES),
            ),
            min_size=1,
            max_size=120,
        )
    )
    def test_no_period_flaps(self, passes):
        shaper = granularity.Shaper(self.policy)
        has, fell_s, total = {'a': 1, 'b': 1}, {}, []
        for number, (one, finest, two, other) in enumerate(passes):
            found = [
                demand('a', one, 8, has['a'], stay=finest, rise=finest),
                demand('b', two, 8, has['b'], stay=other, rise=other),
            ]
            changes = shaper.decide(float(number), found, 2)
            for uuid, parts in changes.items():
                if parts > has[uuid]:
                    self.assertGreaterEqual(
                        number - fell_s.get(uuid, -1e9), self.policy.hold_s
                    )
                else:
                    fell_s[uuid] = number
                has[uuid] = parts
            total.append(sum(one.added(has[one.uuid]) for one in found))
        # The bound on what others pay holds at every moment.
        self.assertLessEqual(max(total), 2 * self.policy.added_periods)


def earliest_deadline_first(tasks, until):
    """Simulate one CPU whose tasks always use all of their runtime.

    :param tasks: (runtime, period) of each, in whole units.
    :returns: the lateness of each task's jobs, and how often the CPU
        changed from one task to another.
    """
    releases = [(0, number) for number in range(len(tasks))]
    heapq.heapify(releases)
    ready, now, switches, last = [], 0, 0, None
    late = [0] * len(tasks)
    while now < until:
        while releases and releases[0][0] <= now:
            at, number = heapq.heappop(releases)
            runtime, period = tasks[number]
            heapq.heappush(ready, [at + period, number, runtime])
            heapq.heappush(releases, (at + period, number))
        if not ready:
            now = releases[0][0]
            continue
        job = ready[0]
        switches += last is not None and last != job[1]
        last = job[1]
        ran = min(job[2], releases[0][0] - now)
        now += ran
        job[2] -= ran
        if not job[2]:
            heapq.heappop(ready)
            late[job[1]] = max(late[job[1]], now - job[0])
    return late, switches


class LyingTestCase(base.BaseTestCase):
    """What an instance that floods itself can take from the others."""

    @hypothesis.given(
        st.sampled_from(granularity.GRANULARITIES),
        st.lists(
            st.tuples(
                st.integers(1, 30), st.sampled_from((4_000, 8_000, 20_000))
            ),
            min_size=1,
            max_size=4,
        ),
        st.integers(1, 40),
    )
    def test_neighbours_get_their_runtime_in_time(self, parts, others, pct):
        # The liar burns all of its runtime, at any granularity.
        left = 100 - pct
        tasks = [(pct * 200 // parts, 20_000 // parts)]
        for share, period in others:
            share = min(share, left)
            if share:
                tasks.append((share * period // 100, period))
                left -= share
        late, switches = earliest_deadline_first(tasks, 400_000)
        self.assertLessEqual(max(late), 0)
        # A period preempts at most once, and is resumed from.
        self.assertLessEqual(
            switches, 2 * sum(400_000 // period + 1 for _, period in tasks)
        )

    def test_what_it_adds_is_bounded(self):
        policy = granularity.Policy(added_periods=300)
        found = [demand('liar', 1e12, 8, periods_s=1e5), demand('b', 10)]
        self.assertEqual(
            {'liar': 1, 'b': 4}, granularity.distribute(policy, found, 2)
        )
