# SPDX-License-Identifier: Apache-2.0

"""What instances communicate is estimated from what they did."""

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import communication

MS = 1_000_000
INFINITE = float('inf')


def use(run_ms=0.0, wakeups=0, wait_ms=0.0):
    return communication.ThreadUse(
        int(run_ms * MS), int(wait_ms * MS), wakeups
    )


def seen(received=0, sent=0, vcpus=(), io=(), interval_s=1.0):
    return communication.Traffic(interval_s, received, sent, vcpus, io)


class AnticipationTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.anticipation = communication.Anticipation()

    def test_nothing_is_known_before_two_transmissions(self):
        self.assertEqual(0, self.anticipation.expected(0, 1))
        self.anticipation.observe(1, 10)
        self.assertEqual(0, self.anticipation.expected(1, 1))

    def test_the_last_count_after_the_last_interval(self):
        for now_s in range(1, 20):
            self.anticipation.observe(now_s, 7 * (now_s % 5 == 0))
        # Sent at 10 and 15: next at 20.
        found = [self.anticipation.expected(now, 1) for now in range(15, 23)]
        self.assertEqual([0, 0, 0, 0, 7, 7, 7, 0], found)

    def test_a_steady_sender_is_expected_always(self):
        for now_s in range(1, 20):
            self.anticipation.observe(now_s, 7)
            if now_s > 1:
                self.assertEqual(7, self.anticipation.expected(now_s, 1))

    @hypothesis.given(st.lists(st.integers(0, 10**9), max_size=50))
    def test_never_more_than_was_sent_once(self, sent):
        anticipation = communication.Anticipation()
        for number, count in enumerate(sent):
            anticipation.observe(float(number), count)
            self.assertLessEqual(
                anticipation.expected(float(number), 1.0), max(sent)
            )


class RequestTestCase(base.BaseTestCase):
    def request_ms(self, *vcpus, received=0, sent=0, runtime_ms=6):
        return (
            communication.request_ns(
                seen(received, sent, vcpus), runtime_ms * MS
            )
            / MS
        )

    def test_between_two_sleeps(self):
        self.assertEqual(
            2.0, self.request_ms(use(100, 50), received=50, sent=50)
        )

    def test_timer_interrupts_do_not_make_requests_shorter(self):
        self.assertEqual(2.2, self.request_ms(use(110, 300), received=50))

    def test_several_packets_do_not_either(self):
        self.assertEqual(2.0, self.request_ms(use(100, 50), received=200))

    def test_acknowledgements_of_a_stream(self):
        self.assertEqual(1.0, self.request_ms(use(100, 200), sent=200))

    def test_a_vcpu_that_computes_serves_no_requests(self):
        self.assertEqual(INFINITE, self.request_ms(use(300, 10), received=99))
        self.assertEqual(
            1.0, self.request_ms(use(300, 10), use(50, 50), use(), received=50)
        )

    def test_nothing_that_wakes_up(self):
        self.assertEqual(INFINITE, self.request_ms())
        self.assertEqual(INFINITE, self.request_ms(use(), received=9))


class IoRequestTestCase(base.BaseTestCase):
    def request_ms(self, run_ms, wakeups, received=0, sent=0):
        return (
            communication.io_request_ns(use(run_ms, wakeups), received, sent)
            / MS
        )

    def test_all_wakeups_of_a_request(self):
        self.assertEqual(0.5, self.request_ms(25, 300, 50, 50))

    def test_several_packets_at_a_wakeup(self):
        self.assertEqual(2.5, self.request_ms(25, 10, 50, 50))

    def test_a_stream(self):
        self.assertEqual(0.5, self.request_ms(25, 300, 2, 100))

    def test_without_packets(self):
        self.assertEqual(25.0, self.request_ms(25, 300))

    @hypothesis.given(
        st.integers(0, 10**9),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    )
    def test_requests_cover_all_of_the_time(
        self, run_ns, wakeups, received, sent
    ):
        found_ns = communication.io_request_ns(
            communication.ThreadUse(run_ns, 0, wakeups), received, sent
        )
        self.assertGreaterEqual(
            found_ns * communication.requests(received, sent) * (1 + 1e-9),
            run_ns,
        )


class WaitingTestCase(base.BaseTestCase):
    def test_one_that_computes_waits_for_nothing(self):
        self.assertEqual(
            [use(50, 50), use()],
            communication.waiting(
                [use(300, 10), use(50, 50), use(), use(300)], 6 * MS
            ),
        )


class LoadTestCase(base.BaseTestCase):
    def test_received_waiting_and_expected(self):
        load = communication.Load(10, 5)
        vcpu = use(100, 50, wait_ms=500)
        main = use(20, 100, wait_ms=1_000)
        load.observe(1, seen(50, 40, [vcpu], [main]), 6 * MS)
        # Each packet waits 10 ms for the main thread and 10 for the vCPU.
        self.assertEqual(50 + 1, load.intensity)
        load.observe(2, seen(50, 40, [vcpu], [main]), 6 * MS)
        self.assertEqual(50 + 1 + 40, load.intensity)

    def test_few_packets_show_nothing_of_requests(self):
        load = communication.Load(10, 5)
        self.assertFalse(load.observe(1, seen(4, 4, [use(99, 4)]), 6 * MS))
        self.assertFalse(load.known)
        self.assertTrue(load.observe(2, seen(5, 4, [use(5, 5)]), 6 * MS))
        self.assertFalse(load.observe(3, seen(0, 0, [use(99, 4)]), 6 * MS))
        self.assertEqual((True, MS), (load.known, load.burst_ns))

    def test_an_interval_of_nothing(self):
        load = communication.Load(10, 5)
        load.observe(1, seen(50, 40, interval_s=0.0), 6 * MS)
        self.assertEqual((0.0, 0.0), (load.intensity, load.burst_ns))

    def test_the_longest_request_of_the_window(self):
        load = communication.Load(10, 5)
        load.observe(1, seen(50, 50, [use(200, 50)]), 6 * MS)
        for now_s in range(2, 11):
            load.observe(now_s, seen(50, 50, [use(50, 50)]), 6 * MS)
            self.assertEqual(4 * MS, load.burst_ns)
        load.observe(11, seen(50, 50, [use(50, 50)]), 6 * MS)
        self.assertEqual(MS, load.burst_ns)

    @hypothesis.given(
        st.lists(
            st.builds(
                communication.Traffic,
                st.floats(0, 100),
                st.integers(0, 10**9),
                st.integers(0, 10**9),
                st.lists(
                    st.builds(
                        communication.ThreadUse,
                        *[st.integers(0, 10**12)] * 2,
                        st.integers(0, 10**7),
                    ),
                    max_size=3,
                ),
                st.lists(
                    st.builds(
                        communication.ThreadUse,
                        *[st.integers(0, 10**12)] * 2,
                        st.integers(0, 10**7),
                    ),
                    max_size=2,
                ),
            ),
            max_size=10,
        )
    )
    def test_any_reading_gives_figures(self, passes):
        load = communication.Load(3, 5)
        for number, one in enumerate(passes):
            load.observe(float(number), one, 6 * MS)
            self.assertGreaterEqual(load.intensity, 0)
            self.assertGreaterEqual(load.burst_ns, 0)
            self.assertLessEqual(communication.pending(one), one.received)
