# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from vsched_agent.profiling.error import plan
from vsched_lib.model import error
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


def task(share_pct, backend=DEADLINE, contenders=0, period_us=10_000):
    return plan.Task(backend, period_us, share_pct * 10_000, contenders)


class TestOrder(base.BaseTestCase):
    def test_the_papers_benchmark_is_the_default(self):
        order = plan.Order((DEADLINE,))
        self.assertEqual(
            [*range(1, 10), *range(10, 100, 10)],
            [share // 10_000 for share in order.shares_ppm],
        )
        self.assertEqual((180, (10_000,)), (order.windows, order.periods_us))

    def test_what_is_out_of_range_is_named(self):
        for wrong, text in (
            ({'shares_ppm': (0,)}, 'share: 0 is outside 1000..1000000'),
            ({'periods_us': (999,)}, 'period: 999'),
            ({'windows': 0}, 'number of windows: 0'),
            ({'contend': 257}, 'hogs: 257'),
            ({'shares_ppm': ()}, 'a share'),
        ):
            error_ = self.assertRaises(
                ValueError, plan.Order, (DEADLINE,), **wrong
            )
            self.assertIn(text, str(error_))

    def test_every_point_alone_and_contended(self):
        order = plan.Order(
            (DEADLINE, CFS), (100_000, 500_000), (10_000, 20_000), contend=3
        )
        found = plan.tasks(order)
        self.assertEqual(16, len(found))
        self.assertEqual([0] * 8 + [3] * 8, [one.contenders for one in found])
        self.assertEqual(len(found), len({one.key for one in found}))

    def test_one_half_can_be_left_out(self):
        for how, modes in (
            ({'contend': 0}, {0}),
            ({'contend': 2, 'alone': False}, {2}),
            ({'contend': 0, 'alone': False}, {0}),
        ):
            order = plan.Order((DEADLINE,), (100_000,), **how)
            self.assertEqual(
                modes, {one.contenders for one in plan.tasks(order)}
            )

    def test_a_tasks_promise_is_whole_microseconds(self):
        self.assertEqual(
            reservation.Reservation(
                333, 1000, reservation.Mode.CAPPED, DEADLINE
            ),
            plan.Task(DEADLINE, 1000, 333_333, 0).promise,
        )
        self.assertEqual(1, plan.Task(DEADLINE, 1000, 1, 0).promise.runtime_us)


class TestSlots(base.BaseTestCase):
    def shares(self, todo, cpus, free_pct):
        slots, tight = plan.slots(todo, cpus, free_pct * 10_000)
        return (
            [[one.share_ppm // 10_000 for one in slot] for slot in slots],
            [one.share_ppm // 10_000 for one in tight],
        )

    def test_alone_there_is_a_cpu_for_each(self):
        self.assertEqual(
            ([[90, 10], [50, 30]], []),
            self.shares([task(share) for share in (10, 30, 50, 90)], 2, 180),
        )

    def test_no_more_at_once_than_is_free(self):
        self.assertEqual(
            ([[80], [70]], [90]),
            self.shares([task(share) for share in (70, 80, 90)], 2, 85),
        )

    def test_contended_probes_can_not_make_each_other_late(self):
        todo = [
            task(share, contenders=4)
            for share in (*range(1, 10), *range(10, 100, 10))
        ]
        slots, tight = plan.slots(todo, 2, 1_800_000)
        self.assertEqual([], tight)
        self.assertEqual(18, sum(map(len, slots)))
        for slot in slots:
            shares = [one.share_ppm for one in slot]
            if len(shares) > 1:
                self.assertLessEqual(sum(shares), 1_800_000 - max(shares))
        self.assertTrue(any(len(slot) > 2 for slot in slots))

    def test_what_guarantees_nothing_is_never_packed(self):
        todo = [task(share, CFS, 4) for share in range(10, 100, 10)]
        slots, _ = plan.slots(todo, 2, 1_800_000)
        self.assertEqual(2, max(map(len, slots)))

    def test_a_slot_is_of_one_kind(self):
        todo = [
            task(10, backend, contenders, period_us)
            for backend in (DEADLINE, CFS)
            for contenders in (0, 4)
            for period_us in (10_000, 20_000)
        ]
        slots, _ = plan.slots(todo, 4, 3_800_000)
        self.assertEqual(8, len(slots))

    def test_how_long_it_takes(self):
        order = plan.Order((DEADLINE,), windows=10)
        self.assertEqual(22, plan.seconds(order, [(task(1),)] * 2))
        self.assertEqual(error.LONG_WINDOWS, plan.Order((CFS,)).windows)
