# SPDX-License-Identifier: Apache-2.0

"""Instances with ``auto``: reservations of I/O threads that are lent."""

from fractions import Fraction
from unittest import mock

from vsched_agent.reservations import applied
from vsched_agent.reservations import io_charging
from vsched_agent.reservations import unclaimed_io
from vsched_agent.tests import charging_host
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS
Code = errors.Code
Mode = extra_specs.IoCharging
UNCLAIMED = applied.IoRoom.UNCLAIMED
WORK_CONSERVING = reservation.Mode.WORK_CONSERVING


class TestAuto(charging_host.AutoCase):
    def test_held_and_no_claim(self):
        self.hold(1, 10_000)
        news = self.second(vm1=0.1)[1]
        self.assertEqual(3_000, self.io_us(1))
        self.assertEqual(10_000, self.guest_us(1))
        self.assertEqual(
            ('auto', 1, 3_000, 20_000, 10_000, 0, None),
            (
                news.io.charging,
                news.io.threads,
                news.io.runtime_us,
                news.io.period_us,
                news.io.guest_runtime_us,
                news.io.charged_mcpu,
                news.io.code,
            ),
        )
        self.assertFalse(news.eventful)
        self.assertEqual(500, self.claimed_mcpu())
        self.assertEqual(
            {self.domains[1].uuid: 500}, self.enforcer.held_mcpu()
        )

    def test_it_caps_nothing(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        self.assertIs(
            WORK_CONSERVING, self.deadline.held[self.domains[1].pid].mode
        )

    def test_the_guest_keeps_its_runtime_whatever_the_load(self):
        self.hold(1, 10_000)
        for _ in range(20):
            self.second(guest=0.5, vm1=0.4)
        self.assertEqual(10_000, self.guest_us(1))
        self.assertEqual(12_000, self.io_us(1))

    def test_a_new_reservation_comes_first(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        # 1.8 in all: 0.5, and 0.15 lent; 1.2 leaves 0.1.
        self.hold(2, 20_000)
        self.hold(3, 4_000)
        self.assertEqual((20_000, 4_000), (self.guest_us(2), self.guest_us(3)))
        self.assertEqual(10_000, self.guest_us(1))
        # What the thread uses is still free, its head-room is not.
        self.assertEqual(2_000, self.io_us(1))
        self.assertIsNone(self.second(vm1=0.1)[1].io.code)

    def test_on_a_full_host_nothing_is_lent(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        self.hold(2, 20_000)
        self.hold(3, 6_000)
        self.assertIsNone(self.io_us(1))
        self.assertEqual(10_000, self.guest_us(1))
        news = self.second(vm1=0.1)
        self.assertEqual(Code.DOES_NOT_FIT, news[1].io.code)
        self.assertEqual(0, news[1].io.threads)
        self.assertTrue(news[1].eventful)
        self.assertIn(
            'need 100 mcpu; no instance has claimed 0 mcpu', news[1].io.detail
        )
        # Reported once, and not tried again and again.
        applied_before = len(self.deadline.applied)
        for _ in range(30):
            self.assertNotIn(1, self.second(vm1=0.1))
        self.assertEqual(applied_before, len(self.deadline.applied))

    def test_held_again_when_capacity_comes_back(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        self.hold(2, 20_000)
        self.hold(3, 6_000)
        self.second(vm1=0.1)
        self.enforcer.release(self.domains.pop(3))
        for _ in range(int(unclaimed_io.RETRY_S) - 2):
            self.assertNotIn(1, self.second(vm1=0.1))
        found = [self.second(vm1=0.1) for _ in range(3)]
        (news,) = (one[1] for one in found if 1 in one)
        self.assertIsNone(news.refusal)
        self.assertTrue(news.eventful)
        self.assertEqual(3_000, self.io_us(1))

    def test_a_refusal_by_the_kernel_takes_what_is_lent(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        # Tasks that nobody knows have 0.6.
        self.deadline.bound = Fraction(12, 10)
        self.hold(2, 14_000)
        self.assertEqual(14_000, self.guest_us(2))
        self.assertIsNone(self.io_us(1))
        for _ in range(20):
            self.second(vm1=0.1)
        self.assertIsNone(self.io_us(1))

    def test_a_refusal_by_the_kernel_says_how_much_is_missing(self):
        def refuse(promises, apply=self.deadline.apply_each):
            try:
                apply(promises)
            except errors.Refused as refusal:
                held = sum(
                    Fraction(one.runtime_us, one.period_us)
                    for one in self.deadline.held.values()
                )
                refusal.figures.update(
                    needed_mcpu=700,
                    held_mcpu=0,
                    free_mcpu=int(1000 * (self.deadline.bound - held)),
                )
                raise

        self.hold(1, 10_000)
        self.second(vm1=0.1)
        self.deadline.bound = Fraction(132, 100)
        self.patch(self.deadline, 'apply_each', refuse)
        self.hold(2, 14_000)
        self.assertEqual(14_000, self.guest_us(2))
        self.assertEqual(2_000, self.io_us(1))

    def test_a_refusal_that_it_cannot_help(self):
        def refuse(promises):
            raise errors.Refused(
                'busy',
                Code.KERNEL_REFUSED,
                {'needed_mcpu': 700, 'held_mcpu': 0, 'free_mcpu': 0},
            )

        self.hold(1, 10_000)
        self.second(vm1=0.1)
        self.patch(self.deadline, 'apply_each', refuse)
        self.assertRaises(
            errors.Refused, self.hold, 2, 14_000, backend=DEADLINE
        )
        self.assertEqual(3_000, self.io_us(1))

    def test_the_kernel_has_no_more_to_lend(self):
        self.hold(1, 10_000)
        self.hold(2, 10_000)
        self.deadline.bound = Fraction(116, 100)
        news = self.second(vm1=0.1, vm2=0.1)
        self.assertEqual([3_000, None], [self.io_us(1), self.io_us(2)])
        self.assertEqual(Code.KERNEL_REFUSED, news[2].io.code)
        self.assertIsNone(news[1].io.code)
        # The kernel is not asked every second.
        tries = []
        self.patch(
            self.deadline,
            'apply_each',
            lambda promises: tries.append(promises),
        )
        for _ in range(20):
            self.second(vm1=0.1, vm2=0.1)
        self.assertEqual([], tries)

    def test_small_needs_come_first(self):
        self.hold(1, 10_000)
        self.hold(2, 16_000)
        self.hold(3, 6_000)
        # 0.2 are left: not for both.
        news = self.second(vm1=0.05, vm2=0.15)
        self.assertEqual(1_500, self.io_us(1))
        self.assertIsNone(self.io_us(2))
        self.assertEqual(400, self.io_us(3))
        self.assertEqual(Code.DOES_NOT_FIT, news[2].io.code)

    def test_a_host_without_the_class_is_no_event(self):
        self.make({CFS: self.cfs})
        self.hold(1, 10_000, backend=CFS)
        news = self.second(vm1=0.1)[1]
        self.assertEqual(Code.BACKEND_UNAVAILABLE, news.io.code)
        self.assertFalse(news.eventful)

    def test_beside_a_quota(self):
        self.hold(1, 10_000, backend=CFS)
        self.second(vm1=0.1)
        self.assertEqual(3_000, self.io_us(1))
        self.assertEqual(0, self.claimed_mcpu())

    def test_what_could_not_be_repaired_is_released(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        pid = self.domains[1].pid
        self.deadline.held[pid] = self.deadline.held[pid + 1]
        self.deadline.bound = Fraction(0)
        self.enforcer.attest()
        self.deadline.bound = None
        self.hold(2, 20_000)
        self.hold(3, 6_000)
        self.second(vm1=0.1)
        self.assertIsNone(self.io_us(1))

    def test_switched_from_capacity_of_its_own(self):
        for mode in (Mode.CHARGE, Mode.OVERPROVISION):
            self.prepare()
            self.hold(1, 10_000, mode)
            self.second(vm1=0.1)
            self.assertEqual(3_000, self.io_us(1))
            self.hold(2, 20_000)
            self.hold(3, 3_000)
            self.hold(1, 10_000)
            self.assertIsNone(self.second(vm1=0.1)[1].io.code)
            held = self.enforcer.io.holding(self.domains[1].uuid)
            self.assertIs(UNCLAIMED, held.room)
            self.assertEqual(1_650, self.claimed_mcpu())

    def test_a_failure_leaves_the_others_reports(self):
        self.hold(1, 10_000)
        self.hold(2, 10_000, Mode.CHARGE)
        self.patch(self.enforcer.unclaimed_io, 'divide', lambda: 1 // 0)
        news = self.second(vm1=0.1, vm2=0.1)
        self.assertEqual('charge', news[2].io.charging)
        self.assertEqual(3_000, self.io_us(2))

    def test_a_successor_adopts(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        held = dict(self.deadline.held)
        self.make()
        self.assertTrue(
            self.enforcer.adopt(self.domains[1], io_charging.ROOMS[Mode.AUTO])
        )
        self.hold(1, 10_000)
        self.assertEqual(held, self.deadline.held)
        self.assertEqual(500, self.claimed_mcpu())
        # What is adopted is lent as well.
        self.hold(2, 20_000)
        self.hold(3, 6_000)
        self.assertIsNone(self.io_us(1))

    def test_released_with_the_reservation(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        self.enforcer.release(self.domains[1])
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([], self.journal.touched())
        self.assertIsNone(self.second(vm1=0.1)[1].io)
        self.assertEqual({}, self.deadline.held)

    def test_an_instance_that_has_gone(self):
        self.hold(1, 10_000)
        self.hold(2, 10_000)
        self.second(vm1=0.1, vm2=0.1)
        gone = self.domains.pop(1)
        self.enforcer.drop(gone.uuid)
        self.charging.forget(gone.uuid)
        del self.deadline.held[100], self.deadline.held[101]
        self.second(vm2=0.1)
        self.assertEqual(Fraction(15, 100), self.enforcer._ledger.lent)

    def test_a_thread_that_goes_while_capacity_is_reclaimed(self):
        self.hold(1, 10_000)
        self.second(vm1=0.1)
        self.deadline.dead.add(100)
        del self.deadline.held[100]
        self.hold(2, 20_000)
        self.hold(3, 6_000)
        self.assertEqual(6_000, self.guest_us(3))


class TestRoomForBursts(charging_host.AutoCase):
    def second(self, packets=50, **ran):
        return super().second(packets=packets, **ran)

    def test_out_of_what_nobody_claims(self):
        self.hold(1, 10_000)
        news = self.second(vm1=0.03)[1]
        self.assertEqual(3_000, self.io_us(1))
        self.assertEqual((3_000, None), (news.io.runtime_us, news.io.code))
        self.assertEqual(500, self.claimed_mcpu())
        for _ in range(20):
            self.assertNotIn(1, self.second(vm1=0.03))

    def test_only_with_auto(self):
        for mode in (Mode.CHARGE, Mode.OVERPROVISION):
            self.prepare()
            self.hold(1, 10_000, mode)
            self.second(vm1=0.03)
            self.assertEqual(900, self.io_us(1))

    def test_not_without_requests(self):
        self.hold(1, 10_000)
        self.second(packets=9, vm1=0.03)
        self.assertEqual(900, self.io_us(1))

    def test_a_claim_takes_it_before_any_head_room(self):
        self.hold(1, 10_000)
        self.hold(2, 10_000)
        self.second(packets=0, vm2=0.1)
        self.second(vm1=0.03, vm2=0.0)
        self.assertEqual(3_000, self.io_us(1))
        # 0.28 is left: 0.15 for each is too much, half of the room is not.
        self.hold(3, 10_400)
        self.assertEqual((1_950, 3_000), (self.io_us(1), self.io_us(2)))
        self.hold(3, 11_200)
        self.assertEqual((900, 3_000), (self.io_us(1), self.io_us(2)))
        news = self.second(vm1=0.03)
        self.assertIsNone(news[1].io.code)
        self.assertEqual((900, 3_000), (self.io_us(1), self.io_us(2)))

    def test_head_room_comes_before_room_for_bursts(self):
        self.hold(1, 14_000)
        self.hold(2, 14_000)
        # 0.4 is left. With room the one needs 0.25, the other 0.5; the one
        # with half of it 0.1625.
        self.second(vm1=0.05, vm2=0.1)
        self.assertEqual([3_250, 3_000], [self.io_us(1), self.io_us(2)])
        self.enforcer.release(self.domains.pop(2))
        self.second(vm1=0.05)
        self.assertEqual(5_000, self.io_us(1))

    def test_kept_with_little_capacity_granted_with_more(self):
        self.hold(1, 10_000)
        self.second(vm1=0.03)
        self.hold(2, 20_000)
        # 0.3 is left: 0.15 for the one, 0.02 for each of the others.
        self.hold(3, 2_000)
        self.second(vm1=0.03)
        self.assertEqual(3_000, self.io_us(1))
        # 0.18 is left now: not for 0.15 and twice 0.02, but for half the room.
        self.hold(3, 2_400)
        self.second(vm1=0.03)
        self.assertEqual(1_950, self.io_us(1))
        self.hold(3, 2_200)
        for _ in range(20):
            self.second(vm1=0.03)
        self.assertEqual(1_950, self.io_us(1))
        self.hold(3, 3_600)
        self.second(vm1=0.03)
        self.assertEqual(900, self.io_us(1))
        # 0.14 is left: half of the room fits, and no quarter more.
        self.hold(3, 3_200)
        for _ in range(20):
            self.second(vm1=0.03)
        self.assertEqual(900, self.io_us(1))
        self.hold(3, 1_600)
        self.second(vm1=0.03)
        self.assertEqual(3_000, self.io_us(1))

    def test_a_refusal_of_the_kernel_is_no_problem(self):
        self.hold(1, 10_000)
        self.deadline.bound = Fraction(60, 100)
        news = self.second(vm1=0.03)[1]
        self.assertEqual((900, None), (self.io_us(1), news.io.code))
        applied_before = len(self.deadline.applied)
        for _ in range(20):
            self.assertNotIn(1, self.second(vm1=0.03))
        self.assertEqual(applied_before, len(self.deadline.applied))

    def test_threads_that_go_get_no_room(self):
        self.hold(1, 10_000)
        self.second(packets=0, vm1=0.03)
        self.deadline.dead.add(100)
        self.second(vm1=0.03)
        self.deadline.dead.clear()
        news = self.second(vm1=0.03)
        self.assertEqual(3_000, self.io_us(1))
        self.assertIsNone(news[1].io.code)

    def test_it_follows_the_load_by_steps(self):
        self.hold(1, 10_000)
        self.second(vm1=0.03)
        self.hold(2, 20_000)
        self.hold(3, 2_400)
        self.second(vm1=0.03)
        self.assertEqual(1_950, self.io_us(1))
        for share in (0.029, 0.031, 0.027, 0.03, 0.029, 0.028) * 5:
            self.second(vm1=share)
            self.assertEqual(1_950, self.io_us(1))

    def test_a_refusal_of_another_kind_is_no_problem(self):
        self.hold(1, 10_000)
        self.second(packets=0, vm1=0.03)
        with mock.patch.object(
            self.enforcer.io,
            'apply',
            autospec=True,
            side_effect=errors.Refused('busy', Code.BACKEND_UNAVAILABLE),
        ):
            news = self.second(vm1=0.03)
        self.assertEqual(900, self.io_us(1))
        self.assertNotIn(1, news)

    def test_a_successor_adopts_it(self):
        self.hold(1, 10_000)
        self.second(vm1=0.03)
        self.make()
        self.enforcer.adopt(self.domains[1], io_charging.ROOMS[Mode.AUTO])
        self.hold(1, 10_000)
        for _ in range(20):
            self.second(vm1=0.03)
            self.assertEqual(3_000, self.io_us(1))
