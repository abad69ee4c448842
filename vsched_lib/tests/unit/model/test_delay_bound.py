# SPDX-License-Identifier: Apache-2.0

"""What others lose by divided periods is bounded."""

import bisect
import itertools

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import delay_bound
from vsched_lib.model import granularity
from vsched_lib.model import reservation

MS = 1_000_000

reservations = st.integers(1, 50).flatmap(
    lambda period_ms: st.builds(
        reservation.Reservation,
        st.integers(2, period_ms * 1_000),
        st.just(period_ms * 1_000),
        granularity=st.sampled_from(granularity.GRANULARITIES),
    )
)
windows = st.integers(0, 200 * MS)


def whole(reserved):
    return reservation.Reservation(reserved.runtime_us, reserved.period_us)


class ExecutionTestCase(base.BaseTestCase):
    def execution_ms(self, window_ms, parts=1):
        return (
            delay_bound.execution_ns(
                reservation.Reservation(6_000, 20_000, granularity=parts),
                int(window_ms * MS),
            )
            / MS
        )

    def test_two_budgets_in_a_row(self):
        self.assertEqual(
            [0, 5, 12, 12, 12, 15, 18, 18],
            [self.execution_ms(one) for one in (0, 5, 12, 20, 26, 29, 32, 46)],
        )

    def test_divided(self):
        self.assertEqual(
            [0, 2, 3, 3, 4.5, 9],
            [self.execution_ms(one, 4) for one in (0, 2, 3, 6.5, 8, 26)],
        )

    @hypothesis.given(
        reservations,
        st.lists(st.floats(0, 1), min_size=1, max_size=12),
        st.data(),
    )
    def test_no_schedule_exceeds_it(self, reserved, places, data):
        """Budgets anywhere in their periods, each without a break."""
        runtime_ns, period_ns = reserved.divided_ns
        runs = [
            (start, start + runtime_ns)
            for start in (
                number * period_ns + int(place * (period_ns - runtime_ns))
                for number, place in enumerate(places)
            )
        ]
        begin = data.draw(st.sampled_from([start for start, _ in runs]))
        end = data.draw(
            st.sampled_from([stop for _, stop in runs if stop > begin])
        )
        executed = sum(
            max(0, min(stop, end) - max(start, begin)) for start, stop in runs
        )
        self.assertLessEqual(
            executed, delay_bound.execution_ns(reserved, end - begin)
        )

    @hypothesis.given(reservations, windows)
    def test_a_division_takes_nothing_from_others(self, reserved, window_ns):
        self.assertLessEqual(
            delay_bound.execution_ns(reserved, window_ns),
            delay_bound.execution_ns(whole(reserved), window_ns),
        )

    @hypothesis.given(reservations)
    def test_a_coarser_one_waits_no_longer_than_undivided(self, reserved):
        self.assertLessEqual(
            delay_bound.starved_ns(reserved),
            delay_bound.starved_ns(whole(reserved)),
        )

    def test_a_part_of_the_wait(self):
        self.assertEqual(
            [28 * MS, 14 * MS, 7 * MS],
            [
                delay_bound.starved_ns(
                    reservation.Reservation(6_000, 20_000, granularity=parts)
                )
                for parts in (1, 2, 4)
            ],
        )


class PreemptionsTestCase(base.BaseTestCase):
    def test_of_one_instance(self):
        """The figures in the guide: a vCPU and its I/O thread, by 4."""
        added = delay_bound.added_preemptions(
            [
                reservation.Reservation(6_000, 20_000, granularity=4),
                reservation.Reservation(2_000, 20_000, granularity=4),
            ],
            20 * MS,
        )
        self.assertEqual(8, added)
        self.assertEqual(80_000, delay_bound.delay_ns(added, 10_000))

    def test_undivided_periods_add_none(self):
        self.assertEqual(
            0,
            delay_bound.added_preemptions(
                [reservation.Reservation(6_000, 20_000)] * 9, 20 * MS
            ),
        )

    def test_of_a_host(self):
        """The figures in the guide: two CPUs, two threads divided."""
        self.assertEqual(
            24,
            delay_bound.most_added_preemptions(
                granularity.Policy(), 2, 2, 20 * MS
            ),
        )

    @hypothesis.given(
        st.lists(
            st.tuples(reservations, st.floats(0, 1), st.floats(0, 1)),
            max_size=5,
        ),
        windows,
        windows,
    )
    def test_periods_that_start_in_a_window(self, threads, begin, window_ns):
        """Wherever divided and undivided periods start."""
        added = 0
        for reserved, phase, other in threads:
            if reserved.granularity == 1:
                continue
            found = [
                _starts(period_ns, int(offset * period_ns), begin, window_ns)
                for period_ns, offset in (
                    (reserved.divided_ns[1], phase),
                    (whole(reserved).divided_ns[1], other),
                )
            ]
            added += found[0] - found[1]
        self.assertLessEqual(
            added,
            delay_bound.added_preemptions(
                [reserved for reserved, _, _ in threads], window_ns
            ),
        )

    @hypothesis.given(
        st.lists(
            st.tuples(reservations, st.integers(1, 4), st.floats(10, 1e6)),
            min_size=1,
            max_size=6,
        ),
        st.integers(1, 8),
        windows,
    )
    def test_whoever_lies(self, instances, cpus, window_ns):
        """One that is ranked first by a flood of packets, too."""
        policy = granularity.Policy()
        liar = (reservation.Reservation(10_000, 20_000), 4, 1e12)
        demands = [
            granularity.Demand(
                str(number),
                intensity,
                8,
                8,
                8,
                count * granularity.periods_per_s(reserved),
            )
            for number, (reserved, count, intensity) in enumerate(
                [liar, *instances]
            )
        ]
        granted = granularity.distribute(policy, demands, cpus)
        threads = [
            reservation.Reservation(
                reserved.runtime_us,
                reserved.period_us,
                granularity=granted[str(number)],
            )
            for number, (reserved, count, _) in enumerate([liar, *instances])
            for _ in range(count)
            if granted[str(number)] > 1
        ]
        self.assertLessEqual(
            delay_bound.added_preemptions(threads, window_ns),
            delay_bound.most_added_preemptions(
                policy, cpus, len(threads), window_ns
            )
            + 1e-6,
        )


def _starts(period_ns, offset_ns, begin, window_ns):
    """Return how many periods start in a window, its ends included."""
    starts = list(
        itertools.takewhile(
            lambda one: one <= begin + window_ns,
            itertools.count(
                offset_ns
                + period_ns * max(0, (begin - offset_ns) // period_ns),
                period_ns,
            ),
        )
    )
    return len(starts) - bisect.bisect_left(starts, begin)
