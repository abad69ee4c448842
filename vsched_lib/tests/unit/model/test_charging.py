# SPDX-License-Identifier: Apache-2.0

"""Charging: budgets follow need, and nobody pays more than he owes."""

import random

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import charging
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS
S = 1_000_000

shares = st.floats(0, 1)
intervals = st.lists(
    st.tuples(shares, shares, st.floats(0.1, 3)), min_size=1, max_size=60
)


class PolicyTestCase(base.BaseTestCase):
    def test_figures_that_make_no_sense(self):
        for fields in (
            {'headroom': 0.9},
            {'window_s': 0},
            {'floor': 0},
            {'floor': 0.5, 'most': 0.4},
            {'most': 1.1},
        ):
            self.assertRaises(ValueError, charging.IoPolicy, **fields)


class IoNeedTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.policy = charging.IoPolicy(
            headroom=1.5, window_s=10, floor=0.02, most=0.9
        )
        self.need = charging.IoNeed(self.policy)

    def seconds(self, count, ran, waited=0.0, held=0.0):
        for _ in range(count):
            self.need.observe(ran * S, waited * S, S, held)
            held = self.need.share(held)
        return held

    def test_nothing_seen_is_the_floor(self):
        self.assertEqual(0.02, self.need.share())

    def test_need_and_headroom(self):
        self.assertAlmostEqual(0.15, self.seconds(1, 0.1))

    def test_grows_at_once(self):
        held = self.seconds(20, 0.1)
        self.assertAlmostEqual(0.3, self.seconds(1, 0.2, held=held))

    def test_small_changes_are_none(self):
        held = self.seconds(20, 0.1)
        for ran in (0.103, 0.1, 0.097, 0.085):
            self.assertEqual(held, self.seconds(12, ran, held=held))

    def test_shrinks_when_the_window_is_over(self):
        held = self.seconds(20, 0.2)
        self.assertAlmostEqual(0.3, held)
        self.assertEqual(held, self.seconds(9, 0.05, held=held))
        self.assertAlmostEqual(0.075, self.seconds(3, 0.05, held=held))

    def test_a_starving_thread_grows_by_steps(self):
        held, seen = 0.02, []
        # It wants 0.5 and gets what it has.
        while held < 0.5:
            got = min(0.5, held)
            self.need.observe(got * S, (1 - got) * S, S, held)
            self.assertTrue(self.need.starves)
            held = self.need.share(held)
            seen.append(held)
        self.assertLessEqual(len(seen), 4)

    def test_waiting_with_budget_left_is_no_starving(self):
        self.need.observe(0.01 * S, 0.5 * S, S, 0.1)
        self.assertFalse(self.need.starves)
        self.assertEqual(0.1, self.need.share(0.1))

    def test_starving_without_a_budget(self):
        self.need.observe(0.05 * S, 0.5 * S, S)
        self.assertTrue(self.need.starves)
        self.assertAlmostEqual(0.1, self.need.last)

    def test_an_empty_interval_says_nothing(self):
        self.need.observe(0, 0, 0)
        self.assertEqual(0.0, self.need.last)

    @hypothesis.given(intervals)
    def test_within_bounds_and_rarely_changed(self, seen):
        need, held, changes, now_s, shrunk_s = (
            charging.IoNeed(self.policy),
            0.0,
            0,
            0.0,
            0.0,
        )
        for ran, waited, length_s in seen:
            waited = min(waited, 1 - ran)
            need.observe(
                ran * length_s * S, waited * length_s * S, length_s * S, held
            )
            now_s += length_s
            share = need.share(held)
            self.assertGreaterEqual(share, self.policy.floor)
            self.assertLessEqual(share, self.policy.most)
            # Never less than is needed now, but for the dead band.
            self.assertGreaterEqual(
                share * 1.051, min(self.policy.most, 1.5 * ran)
            )
            if share < held:
                self.assertGreaterEqual(now_s - shrunk_s, 9.999)
            if share != held:
                shrunk_s, changes = now_s, changes + 1
            held = share


class PeakTestCase(base.BaseTestCase):
    def test_hardly_any_requests_need_none(self):
        for rate in (0, 0.1, 2):
            self.assertEqual(1.0, charging.peak(rate))

    def test_few_requests_need_the_most(self):
        for rate in (5, 45, 100):
            self.assertEqual(charging.MOST_PEAK, charging.peak(rate))

    def test_many_requests_need_less(self):
        # One on average: more than 4 with 0.4 %, more than 3 with 1.9 %.
        self.assertEqual(4.0, charging.peak(200))
        # Five on average: more than 11 with 0.5 %, more than 10 with 1.4 %.
        self.assertAlmostEqual(11 / 5, charging.peak(1_000))
        self.assertAlmostEqual(1.12, charging.peak(80_000), 1)

    def test_a_longer_window_needs_less(self):
        self.assertEqual(4.0, charging.peak(50, 0.02))

    @hypothesis.given(st.floats(0, 1e9), st.floats(1e-4, 1))
    def test_within_bounds(self, rate, window_s):
        found = charging.peak(rate, window_s)
        self.assertGreaterEqual(found, 1)
        self.assertLessEqual(found, charging.MOST_PEAK)

    @hypothesis.given(st.floats(250, 50_000), st.integers(0, 2**32))
    @hypothesis.settings(max_examples=20)
    def test_arrivals_at_random_rarely_exceed_it(self, rate, seed):
        chance, mean = random.Random(seed), rate * charging.PEAK_WINDOW_S
        most, exceeded, windows = charging.peak(rate) * mean, 0, 2_000
        for _ in range(windows):
            arrived, left = 0, chance.expovariate(mean)
            while left < 1 and arrived <= most:
                arrived += 1
                left += chance.expovariate(mean)
            exceeded += arrived > most + 1e-6
        # 1 % of 2000 is 20; 4 standard deviations more hardly ever happen.
        self.assertLess(exceeded, 45)


class ShareWithRoomTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.need = charging.IoNeed(
            charging.IoPolicy(headroom=1.5, window_s=10, floor=0.02, most=0.9)
        )

    def observe(self, ran):
        self.need.observe(ran * S, 0, S)

    def test_room_by_bursts(self):
        self.observe(0.03)
        full = self.need.share()
        self.assertAlmostEqual(0.15, self.need.share_with_room(full, 5.0))

    def test_of_the_mean_while_it_is_busy(self):
        for ran in (0.0, 0.04, 0.001, 0.02, 0.03, 0.019):
            self.observe(ran)
        self.assertAlmostEqual(0.15, self.need.share_with_room(0.06, 5.0))

    def test_never_less_than_full(self):
        self.observe(0.03)
        full = self.need.share()
        self.assertEqual(full, self.need.share_with_room(full, 1.2))

    def test_never_more_than_most(self):
        self.observe(0.5)
        self.assertEqual(0.9, self.need.share_with_room(0.75, 5.0))

    def test_a_guess_of_the_need_is_not_multiplied(self):
        self.need.observe(0.03 * S, 0.5 * S, S)
        self.assertAlmostEqual(0.09, self.need.share())
        self.assertAlmostEqual(0.15, self.need.share_with_room(0.09, 5.0))

    def test_kept_while_it_is_close(self):
        self.observe(0.03)
        for before in (0.145, 0.15, 0.19):
            self.assertEqual(
                before, self.need.share_with_room(0.045, 5.0, before)
            )
        for before in (0.1, 0.21, 0.045):
            self.assertAlmostEqual(
                0.15, self.need.share_with_room(0.045, 5.0, before)
            )

    @hypothesis.given(shares, st.floats(1, 5), shares, shares)
    def test_within_bounds(self, ran, bursts, full, before):
        self.observe(ran)
        full = min(0.9, full)
        found = self.need.share_with_room(full, bursts, before)
        self.assertGreaterEqual(found, full)
        self.assertLessEqual(found, max(0.9, before))


class RuntimeTestCase(base.BaseTestCase):
    @hypothesis.given(
        shares, st.integers(1000, 1_000_000), st.integers(0, 10_000)
    )
    def test_never_a_budget_that_builds_up_debt(
        self, share, period_us, tick_us
    ):
        runtime_us = charging.io_runtime_us(share, period_us, tick_us)
        reserved = reservation.Reservation(runtime_us, period_us)
        self.assertLessEqual(
            reserved.worst_debt_us(tick_us), reservation.MAX_DEBT_US
        )
        self.assertGreaterEqual(runtime_us, share * period_us - 1e-3)

    @hypothesis.given(st.dictionaries(st.integers(1, 9), shares), shares)
    def test_within(self, expected, bound):
        found = charging.within(expected, bound)
        self.assertEqual(expected.keys(), found.keys())
        self.assertLessEqual(sum(found.values()), max(bound, 0) + 1e-9)
        if sum(expected.values()) <= bound:
            self.assertEqual(expected, found)


class LedgerTestCase(base.BaseTestCase):
    def test_one_that_uses_its_promise_owes_nothing(self):
        ledger = charging.Ledger()
        for _ in range(10):
            ledger.observe(0.6 * S, 0, S, 0.6)
        self.assertEqual(0, ledger.debt_us)
        self.assertEqual(0.6, ledger.guest_share(0.6))

    def test_the_host_s_work_is_taken_off(self):
        ledger = charging.Ledger()
        for _ in range(20):
            ledger.observe(0.4 * S, 0.2 * S, S, 0.6)
        self.assertAlmostEqual(0.4, ledger.guest_share(0.6), 4)

    def test_what_is_coming_is_taken_off_at_once(self):
        self.assertAlmostEqual(0.3, charging.Ledger().guest_share(0.6, 0.3))

    def test_debt_is_paid_back_and_no_more(self):
        ledger = charging.Ledger()
        ledger.observe(0.6 * S, 0.6 * S, S, 0.6)
        self.assertAlmostEqual(0.6 * S, ledger.debt_us)
        for _ in range(60):
            share = ledger.guest_share(0.6)
            ledger.observe(share * S, 0, S, 0.6)
        self.assertLess(ledger.debt_us, 0.01 * S)
        self.assertGreater(ledger.guest_share(0.6), 0.59)

    def test_who_may_use_idle_time_owes_nothing(self):
        ledger = charging.Ledger()
        ledger.observe(0.95 * S, 0.1 * S, S, 0.3, owes=False)
        self.assertEqual(0, ledger.debt_us)
        self.assertAlmostEqual(0.25, ledger.guest_share(0.3))

    def test_settles_where_the_guest_causes_the_work(self):
        for cost in (0.1, 0.5, 1.0, 2.0):
            ledger, share = charging.Ledger(), 0.6
            for second in range(120):
                ledger.observe(share * S, cost * share * S, S, 0.6)
                share = ledger.guest_share(0.6)
                if second > 60:
                    self.assertAlmostEqual(0.6, share * (1 + cost), delta=0.02)

    @hypothesis.given(
        st.lists(st.tuples(shares, shares, st.floats(0, 5)), max_size=50),
        st.floats(0.01, 4),
    )
    def test_bounds(self, seen, reserved):
        ledger = charging.Ledger()
        for guest, host, length_s in seen:
            ledger.observe(
                guest * length_s * S,
                host * length_s * S,
                length_s * S,
                reserved,
            )
            self.assertGreaterEqual(ledger.debt_us, 0)
            self.assertLessEqual(
                ledger.debt_us, reserved * charging.MOST_DEBT_S * S
            )
            left = ledger.guest_share(reserved)
            self.assertLessEqual(left, reserved)
            self.assertGreaterEqual(
                left, reserved * charging.GUEST_FLOOR - 1e-9
            )


class GuestRuntimeTestCase(base.BaseTestCase):
    reserved = reservation.Reservation(10_000, 20_000)

    def runtime(
        self, share, held_us=10_000, vcpus=1, backend=DEADLINE, reserved=None
    ):
        return charging.guest_runtime_us(
            reserved or self.reserved, backend, vcpus, share, held_us, 4_000
        )

    def test_divided_among_vcpus(self):
        self.assertEqual(8_000, self.runtime(0.8, vcpus=2))

    def test_small_changes_are_none(self):
        self.assertEqual(8_000, self.runtime(0.4024, 8_000))
        self.assertEqual(8_100, self.runtime(0.405, 8_000))

    def test_changes_of_domains_are_larger(self):
        for backend in set(reservation.Backend) - reservation.OF_LINUX:
            self.assertEqual(
                8_000, self.runtime(0.4095, 8_000, backend=backend)
            )
            self.assertEqual(8_200, self.runtime(0.41, 8_000, backend=backend))
            self.assertEqual(
                10_000, self.runtime(0.491, 9_500, backend=backend)
            )

    def test_the_whole_promise_comes_back(self):
        for share in (0.5, 0.4999, 0.498):
            self.assertEqual(10_000, self.runtime(share, 9_990))

    def test_the_least(self):
        self.assertEqual(1_000, self.runtime(0.0))
        self.assertEqual(
            1_000,
            self.runtime(
                0.0,
                2_000,
                backend=CFS,
                reserved=reservation.Reservation(2_000, 20_000),
            ),
        )

    @hypothesis.given(
        st.integers(100, 20_000),
        shares,
        st.integers(1, 20_000),
        st.sampled_from([DEADLINE, CFS]),
    )
    def test_never_more_than_the_promise(
        self, runtime_us, share, held_us, backend
    ):
        reserved = reservation.Reservation(runtime_us, 20_000)
        found = charging.guest_runtime_us(
            reserved, backend, 1, share, held_us, 4_000
        )
        self.assertLessEqual(found, runtime_us)
        self.assertGreaterEqual(found, 1)
