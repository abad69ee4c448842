# SPDX-License-Identifier: Apache-2.0

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
