# SPDX-License-Identifier: Apache-2.0

"""Parts of I/O threads' periods cover whole requests."""

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_agent.accounting import base as readings
from vsched_agent.communication import serving
from vsched_agent.enforcement import base as enforcement
from vsched_agent.reservations import applied
from vsched_agent.reservations import io_sizing
from vsched_lib.model import charging
from vsched_lib.model import communication
from vsched_lib.model import granularity
from vsched_lib.model import reservation

US = 1_000
LIMITS = granularity.Limits(100_000, 2_500_000, 4_000_000)
MAIN, WORKER = 100, 101


def holding(**runtimes_us):
    return applied.IoHolding(
        1,
        tuple(
            (
                enforcement.Target(index, int(name[1:])),
                reservation.Reservation(runtime_us, 20_000),
            )
            for index, (name, runtime_us) in enumerate(runtimes_us.items())
        ),
        applied.IoRoom.UNCLAIMED,
    )


class TestServingThreads(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now_s = 0.0
        self.threads = serving.ServingThreads(10.0)

    def second(self, requests=50, request_us=500, wakeups=6, worker_us=None):
        self.now_s += 1
        uses = {
            MAIN: communication.ThreadUse(
                requests * request_us * US, 0, requests * wakeups
            )
        }
        if worker_us is not None:
            uses[WORKER] = communication.ThreadUse(
                requests * worker_us * US, 0, requests
            )
        self.threads.observe(self.now_s, uses, requests, requests)

    def test_nothing_seen(self):
        self.assertEqual(0.0, self.threads.busiest_request_ns)
        self.assertFalse(self.threads.held(holding(t100=2_000)))
        self.assertFalse(
            self.threads.divisible(holding(t100=2_000), LIMITS, 1.0)
        )

    def test_the_whole_request(self):
        self.second()
        self.assertEqual(500 * US, self.threads.request_ns(MAIN))
        self.assertEqual(0.0, self.threads.request_ns(WORKER))

    def test_the_longest_of_the_window(self):
        self.second(request_us=800)
        for _ in range(9):
            self.second()
            self.assertEqual(800 * US, self.threads.request_ns(MAIN))
        self.second()
        self.assertEqual(500 * US, self.threads.request_ns(MAIN))

    def test_a_thread_that_has_ended(self):
        self.second(worker_us=100)
        self.assertEqual(100 * US, self.threads.request_ns(WORKER))
        self.second()
        self.assertEqual(0.0, self.threads.request_ns(WORKER))

    def test_divisible_by_the_thread_that_serves_most(self):
        self.second(worker_us=100)
        for runtime_us, divisible in ((1_199, False), (1_200, True)):
            self.assertEqual(
                divisible,
                self.threads.divisible(
                    holding(t100=runtime_us, t101=8_000), LIMITS, 1.2
                ),
            )
        self.assertFalse(
            self.threads.divisible(holding(t101=8_000), LIMITS, 1.0)
        )
        self.assertFalse(self.threads.divisible(None, LIMITS, 1.0))

    def test_each_thread_has_its_own_parts(self):
        self.second(worker_us=100)
        held = holding(t100=1_200, t101=1_200)
        self.assertEqual(
            {MAIN: 2, WORKER: 4}, self.threads.parts(held, 8, LIMITS, 1.2)
        )
        self.assertEqual(
            {MAIN: 2, WORKER: 2}, self.threads.parts(held, 2, LIMITS, 1.2)
        )
        self.assertEqual({}, self.threads.parts(None, 8, LIMITS, 1.2))

    @hypothesis.given(
        st.integers(1, 5_000),
        st.integers(1, 4_000),
        st.integers(1, 50),
        st.integers(400, 18_000),
    )
    def test_no_part_is_smaller_than_a_request(
        self, requests, request_us, wakeups, runtime_us
    ):
        threads = serving.ServingThreads(10.0)
        threads.observe(
            1.0,
            {
                MAIN: communication.ThreadUse(
                    requests * request_us * US, 0, requests * wakeups
                )
            },
            requests,
            requests,
        )
        parts = threads.parts(holding(t100=runtime_us), 8, LIMITS, 1.2)[MAIN]
        if parts > 1:
            self.assertGreaterEqual(runtime_us / parts, 1.2 * request_us)

    def test_few_requests_are_divided_with_room_for_bursts(self):
        """What their mean with head-room does not permit."""
        sizing = io_sizing.IoSizing(charging.IoPolicy(), 4_000)
        self.second()
        sizing.observe(
            readings.Reading(
                'uuid',
                0,
                10**9,
                (
                    readings.ThreadUse(
                        MAIN, readings.Role.EMULATOR, 25_000 * US, 0, 300
                    ),
                ),
                0,
            ),
            None,
        )
        full = sizing.full(20_000, reservation.Mode.WORK_CONSERVING)
        found = [
            self.threads.divisible(
                applied.IoHolding(1, one, applied.IoRoom.UNCLAIMED),
                LIMITS,
                1.2,
            )
            for one in (full, sizing.with_room(full, 50))
        ]
        self.assertEqual([False, True], found)
