# SPDX-License-Identifier: Apache-2.0

import dataclasses

from oslotest import base

from vsched_agent.accounting import base as readings
from vsched_agent.reservations import applied
from vsched_agent.reservations import io_sizing
from vsched_lib.model import charging
from vsched_lib.model import reservation

CAPPED = reservation.Mode.CAPPED
WORK_CONSERVING = reservation.Mode.WORK_CONSERVING
Role = readings.Role


class TestIoSizing(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.sizing = io_sizing.IoSizing(charging.IoPolicy(window_s=10), 4_000)
        self.current = None

    def observe(self, waited=0.0, **ran):
        self.sizing.observe(
            readings.Reading(
                'uuid',
                0,
                10**9,
                tuple(
                    readings.ThreadUse(
                        int(name[1:]),
                        Role.OTHER if name[0] == 'o' else Role.EMULATOR,
                        int(share * 1e9),
                        int(waited * 1e9),
                        1,
                    )
                    for name, share in ran.items()
                ),
                0,
            ),
            self.current,
        )

    def full(self, period_us=20_000, mode=CAPPED, bound=None):
        found = self.sizing.full(period_us, mode, bound)
        self.current = applied.IoHolding(1, found, applied.IoRoom.ON_TOP)
        return {target.tid: one for target, one in found}

    def test_head_room(self):
        self.observe(t1=0.1, t2=0.0, o3=0.5)
        full = self.full()
        self.assertEqual({1: 3_000, 2: 400}, runtimes_us(full))
        self.assertEqual(
            {1: 2_000, 2: 400},
            runtimes_us(dict(least(self.sizing, self.current))),
        )

    def test_least_is_never_more_than_full(self):
        self.observe(t1=0.1)
        self.full()
        for share in (0.14, 0.145, 0.2):
            self.observe(t1=share)
            for (_, full), (_, one) in zip(
                self.full().items(),
                least(self.sizing, self.current),
                strict=True,
            ):
                self.assertLessEqual(one.runtime_us, full.runtime_us)

    def test_kept_while_it_is_close(self):
        self.observe(t1=0.1)
        before = self.full()
        self.observe(t1=0.09)
        self.assertEqual(before, self.full())

    def test_another_period_and_mode(self):
        self.observe(t1=0.1)
        self.full()
        self.observe(t1=0.1)
        found = self.full(10_000, WORK_CONSERVING)[1]
        self.assertEqual(
            (1_500, 10_000, WORK_CONSERVING),
            (found.runtime_us, found.period_us, found.mode),
        )

    def test_bound(self):
        self.observe(t1=0.2, t2=0.1)
        self.assertEqual(
            {1: 4_000, 2: 2_000}, runtimes_us(self.full(bound=0.3))
        )

    def test_what_they_are_about_to_use(self):
        self.observe(t1=0.1)
        self.assertEqual(0.0, self.sizing.coming)
        self.observe(t1=0.1, waited=0.5)
        self.assertAlmostEqual(0.2, self.sizing.coming)

    def test_idle(self):
        self.observe(t1=0.001, t2=0.0)
        self.assertTrue(self.sizing.idle)
        self.observe(t1=0.0, t2=0.003)
        self.observe(t1=0.0, t2=0.0)
        self.assertFalse(self.sizing.idle)

    def with_room(self, requests_per_s):
        """Return full ones and those with room, which are in force then."""
        full = self.sizing.full(20_000, WORK_CONSERVING)
        found = self.sizing.with_room(full, requests_per_s)
        self.current = applied.IoHolding(1, found, applied.IoRoom.UNCLAIMED)
        return [
            {target.tid: one.runtime_us for target, one in threads}
            for threads in (full, found)
        ]

    def test_room_for_bursts(self):
        self.observe(t1=0.03, t2=0.0, o3=0.5)
        self.assertEqual(
            [{1: 900, 2: 400}, {1: 3_000, 2: 400}], self.with_room(50)
        )

    def test_room_is_no_head_room(self):
        """What was room for bursts is not kept as head-room."""
        self.observe(t1=0.03)
        self.with_room(50)
        for _ in range(20):
            self.observe(t1=0.028)
            self.assertEqual([{1: 900}, {1: 3_000}], self.with_room(50))

    def test_head_room_grows_while_there_is_room(self):
        self.observe(t1=0.03)
        self.with_room(50)
        self.observe(t1=0.06)
        # Five times the mean of both.
        self.assertEqual([{1: 1_800}, {1: 4_500}], self.with_room(50))

    def test_a_part_of_the_room_in_force_does_not_change_it(self):
        for share in (0.03, 0.029, 0.031, 0.028):
            self.observe(t1=share)
            self.assertEqual([{1: 900}, {1: 3_000}], self.with_room(50))
            self.current = applied.IoHolding(
                1,
                tuple(
                    (target, dataclasses.replace(one, runtime_us=1_950))
                    for target, one in self.current.reservations
                ),
                applied.IoRoom.UNCLAIMED,
            )

    def test_few_requests_show_no_bursts(self):
        self.observe(t1=0.03)
        for requests_per_s in (0, 9):
            self.assertEqual(
                [{1: 900}, {1: 900}], self.with_room(requests_per_s)
            )
        self.assertEqual([{1: 900}, {1: 3_000}], self.with_room(50))
        self.assertEqual([{1: 900}, {1: 3_000}], self.with_room(0))

    def test_many_requests_need_less_room(self):
        self.observe(t1=0.1)
        self.assertEqual([{1: 3_000}, {1: 4_400}], self.with_room(1_000))

    def test_room_is_kept_while_bursts_are_about_the_same(self):
        self.observe(t1=0.1)
        self.with_room(1_000)
        for requests_per_s in (990, 1_010, 1_100):
            self.observe(t1=0.1)
            self.assertEqual(
                [{1: 3_000}, {1: 4_400}], self.with_room(requests_per_s)
            )

    def test_room_goes_with_the_need(self):
        self.observe(t1=0.03)
        self.with_room(50)
        for _ in range(12):
            self.observe(t1=0.0)
            found = self.with_room(0)
        self.assertEqual([{1: 400}, {1: 400}], found)

    def test_no_threads_need_no_room(self):
        self.observe()
        self.assertEqual([{}, {}], self.with_room(50))

    def test_threads_that_have_ended(self):
        self.observe(t1=0.1, t2=0.1)
        self.full()
        self.observe(t2=0.1)
        self.assertEqual([2], list(self.full()))


def runtimes_us(found):
    return {tid: one.runtime_us for tid, one in found.items()}


def least(sizing, current):
    return [
        (target.tid, one) for target, one in sizing.least(current.reservations)
    ]
