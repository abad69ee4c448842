# SPDX-License-Identifier: Apache-2.0

import dataclasses
from fractions import Fraction


from vsched_agent.accounting import base as readings
from vsched_agent.reservations import applied
from vsched_agent.reservations import io_charging
from vsched_agent.reservations import io_threads
from vsched_agent.tests import enforcing_host
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import charging as model
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS
Mode = extra_specs.IoCharging
Role = readings.Role
INSIDE = applied.IoRoom.INSIDE
MAIN, IOTHREAD, POOL = 100, 150, 160
S = 1_000_000


class ChargingCase(enforcing_host.EnforcerCase):
    """One domain of one vCPU with 10 ms every 20 ms, and what serves it."""

    backend = DEADLINE

    def setUp(self):
        super().setUp()
        self.clock = 100.0
        self.patchers = []
        self.make()
        self.domain = fakes.domain(1)
        self.serving = {MAIN: Role.EMULATOR, IOTHREAD: Role.IOTHREAD}

    def make(self, enabled=True):
        self.enforcer = self.new_enforcer()
        self.charging = io_charging.Charging(
            io_charging.Settings(
                model.IoPolicy(window_s=10), tick_us=4000, enabled=enabled
            ),
            self.enforcer,
        )

    def hold(self, mode, runtime_us=10_000, domain=None):
        domain = domain or self.domain
        charged = self.charging.set_mode(domain, mode)
        return self.enforcer.hold(
            domain,
            reservation.Reservation(runtime_us, 20_000, backend=self.backend),
            charged=charged,
        )

    def second(
        self,
        guest=0.3,
        main=0.0,
        iothread=0.0,
        waited=0.0,
        domain=None,
        others=0.0,
    ):
        """Run one pass; return the changes."""
        domain = domain or self.domain
        ran = {MAIN: main, IOTHREAD: iothread}
        reading = readings.Reading(
            domain.uuid,
            0,
            10**9,
            (
                readings.ThreadUse(101, Role.VCPU, int(guest * 1e9), 0, 1),
                readings.ThreadUse(POOL, Role.OTHER, 0, 0, 0),
                *(
                    readings.ThreadUse(
                        tid,
                        role,
                        int(ran.get(tid, 0) * 1e9),
                        int(waited * 1e9),
                        1,
                    )
                    for tid, role in self.serving.items()
                ),
            ),
            int((main + iothread + others) * 1e9),
        )
        sample = messages.UsageSample(
            domain.uuid,
            1.0,
            S,
            int(guest * S),
            0,
            direct_us=int((main + iothread + others) * S),
        )
        return self.charging.adjust([domain], [sample], {domain.uuid: reading})

    def held(self, tid, backend=None):
        found = (backend or self.deadline).held.get(tid)
        return found and (found.runtime_us, found.period_us)


class TestCharge(ChargingCase):
    def test_i_o_threads_get_what_they_need(self):
        self.hold(Mode.CHARGE)
        (news,) = self.second(main=0.1)
        self.assertEqual((3_000, 20_000), self.held(MAIN))
        self.assertEqual((400, 20_000), self.held(IOTHREAD))
        self.assertIsNone(self.held(POOL))
        self.assertEqual(
            ('charge', 2, 3_400, 20_000, None),
            (
                news.io.charging,
                news.io.threads,
                news.io.runtime_us,
                news.io.period_us,
                news.io.code,
            ),
        )
        self.assertFalse(news.eventful)

    def test_the_guest_is_charged(self):
        self.hold(Mode.CHARGE)
        for _ in range(20):
            self.second(guest=self.held(101)[0] / 20_000, main=0.1)
        self.assertAlmostEqual(8_000, self.held(101)[0], delta=60)
        # The claim is the whole reservation.
        self.assertEqual(500, self.enforcer.admitted_mcpu())
        self.assertEqual(500, sum(self.enforcer.held_mcpu().values()))
        for _ in range(20):
            self.second(guest=0.1)
        self.assertEqual((10_000, 20_000), self.held(101))

    def test_without_i_o_nothing_is_charged(self):
        self.hold(Mode.CHARGE)
        for _ in range(20):
            self.second(guest=0.5)
        self.assertEqual((10_000, 20_000), self.held(101))

    def test_time_of_pool_threads_is_charged_as_well(self):
        self.hold(Mode.CHARGE)
        for _ in range(20):
            self.second(guest=self.held(101)[0] / 20_000, others=0.1)
        self.assertAlmostEqual(8_000, self.held(101)[0], delta=60)

    def test_figures_are_reported_at_intervals(self):
        self.hold(Mode.CHARGE)
        self.assertEqual(1, len(self.second(main=0.1)))
        for _ in range(5):
            self.assertEqual([], self.second(main=0.1))

    def test_on_a_full_host_there_is_no_surplus(self):
        self.hold(Mode.CHARGE, 16_000)
        other = fakes.domain(2)
        self.enforcer.hold(other, reservation.Reservation(20_000, 20_000))
        for _ in range(3):
            self.second(guest=0.6, main=0.1)
            self.assertLessEqual(
                self.held(101)[0]
                + self.held(MAIN)[0]
                + self.held(IOTHREAD)[0],
                16_000,
            )

    def test_spare_capacity_is_used(self):
        self.hold(Mode.CHARGE, 16_000)
        self.enforcer.hold(
            fakes.domain(2), reservation.Reservation(19_000, 20_000)
        )
        self.second(guest=0.6, main=0.1)
        # 0.8 and 0.05 spare, less 0.17 for the I/O threads.
        self.assertEqual((13_600, 20_000), self.held(101))
        self.second(guest=0.6, main=0.1)
        self.assertEqual((13_600, 20_000), self.held(101))

    def test_surplus_is_reclaimed_for_a_new_instance(self):
        self.hold(Mode.CHARGE, 16_000)
        self.second(guest=0.8)
        self.assertEqual((16_000, 20_000), self.held(101))
        other = fakes.domain(2)
        self.enforcer.hold(other, reservation.Reservation(20_000, 20_000))
        self.assertEqual((20_000, 20_000), self.held(201))
        self.assertEqual((15_200, 20_000), self.held(101))
        self.second(guest=0.76)
        self.assertEqual((15_200, 20_000), self.held(101))

    def test_capacity_that_unknown_tasks_use(self):
        self.hold(Mode.CHARGE)
        self.deadline.bound = Fraction(1, 2)
        (news,) = self.second(guest=0.5, main=0.1)
        self.assertIsNone(news.refusal)
        self.assertEqual((3_000, 20_000), self.held(MAIN))
        self.assertEqual((6_600, 20_000), self.held(101))
        # The kernel is not asked every time.
        before = len(self.deadline.applied)
        self.second(guest=0.33, main=0.1)
        self.assertEqual(before, len(self.deadline.applied))

    def test_a_change_of_the_reservation_keeps_the_fraction(self):
        self.hold(Mode.CHARGE)
        for _ in range(20):
            self.second(guest=0.4, main=0.1)
        before = self.held(101)[0]
        self.hold(Mode.CHARGE, 5_000)
        self.assertAlmostEqual(before / 2, self.held(101)[0], delta=1)
        self.assertEqual((3_000, 20_000), self.held(MAIN))

    def test_switched_live(self):
        self.hold(Mode.CHARGE)
        for _ in range(20):
            self.second(guest=0.4, main=0.1)
        self.hold(Mode.OVERPROVISION)
        self.second(guest=0.4, main=0.1)
        self.assertEqual((10_000, 20_000), self.held(101))
        self.assertEqual((3_000, 20_000), self.held(MAIN))
        self.assertEqual(670, self.enforcer.admitted_mcpu())
        self.assertEqual(670, sum(self.enforcer.held_mcpu().values()))
        self.hold(Mode.NONE)
        self.assertEqual({101}, set(self.deadline.held))
        self.assertEqual(500, self.enforcer.admitted_mcpu())
        self.assertEqual(500, sum(self.enforcer.held_mcpu().values()))
        (news,) = self.second(guest=0.4, main=0.1)
        self.assertIsNone(news.io)
        self.assertEqual([], self.second(guest=0.4, main=0.1))

    def test_too_small_to_hold_them(self):
        self.hold(Mode.CHARGE, 200)
        (news,) = self.second(guest=0.01)
        self.assertEqual(errors.Code.DOES_NOT_FIT, news.io.code)
        self.assertTrue(news.eventful)
        self.assertIsNone(self.held(MAIN))
        self.assertEqual((200, 20_000), self.held(101))

    def test_threads_come_and_go(self):
        self.hold(Mode.CHARGE)
        self.second(main=0.1)
        del self.serving[IOTHREAD]
        self.deadline.dead.add(IOTHREAD)
        self.assertEqual(([], set()), self.enforcer.attest())
        (news,) = self.second(main=0.1)
        self.assertEqual(1, news.io.threads)
        self.serving[IOTHREAD + 1] = Role.IOTHREAD
        (news,) = self.second(main=0.1)
        self.assertEqual(2, news.io.threads)
        self.assertEqual((400, 20_000), self.held(IOTHREAD + 1))

    def test_a_thread_that_goes_meanwhile_is_no_event(self):
        self.hold(Mode.CHARGE)
        self.deadline.dead.add(IOTHREAD)
        (news,) = self.second()
        self.assertFalse(news.eventful)
        self.assertEqual(0, news.io.threads)
        del self.serving[IOTHREAD]
        self.second()
        self.assertEqual((400, 20_000), self.held(MAIN))

    def test_drift_is_repaired(self):
        self.hold(Mode.CHARGE)
        self.second(main=0.1)
        del self.deadline.held[MAIN]
        drifts, stale = self.enforcer.attest()
        self.assertEqual([(MAIN,)], [one.tids for one in drifts])
        self.assertEqual(set(), stale)
        self.assertEqual((3_000, 20_000), self.held(MAIN))

    def test_released_with_the_reservation(self):
        self.hold(Mode.CHARGE)
        self.second(main=0.1)
        self.assertIn(
            (self.domain.uuid, io_threads.KEY), self.journal.touched()
        )
        self.assertTrue(self.enforcer.release(self.domain))
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([], self.journal.touched())

    def test_a_successor_adopts(self):
        self.hold(Mode.CHARGE)
        for _ in range(20):
            self.second(guest=0.4, main=0.1)
        held = dict(self.deadline.held)
        applied = len(self.deadline.applied)
        self.make()
        self.assertTrue(self.enforcer.adopt(self.domain, INSIDE))
        self.hold(Mode.CHARGE)
        self.assertEqual(held, self.deadline.held)
        self.assertEqual(500, self.enforcer.admitted_mcpu())
        self.assertEqual(500, sum(self.enforcer.held_mcpu().values()))
        self.second(guest=0.4, main=0.1)
        self.assertEqual(held[MAIN], self.deadline.held[MAIN])
        self.assertEqual(
            [(101,)], sorted(set(self.deadline.applied[applied:]))
        )
        self.hold(Mode.NONE)
        self.second()
        self.assertEqual({101}, set(self.deadline.held))
        self.assertEqual((10_000, 20_000), self.held(101))

    def test_a_successor_without_charging_restores(self):
        self.hold(Mode.CHARGE)
        self.second(main=0.1)
        self.make(enabled=False)
        self.enforcer.adopt(self.domain)
        self.hold(Mode.CHARGE)
        self.second(main=0.1)
        self.assertEqual({101}, set(self.deadline.held))

    def test_started_anew(self):
        self.hold(Mode.CHARGE)
        self.second(main=0.1)
        self.domain = dataclasses.replace(
            fakes.domain(1, pid=500), uuid=self.domain.uuid
        )
        self.deadline.held.clear()
        self.serving = {500: Role.EMULATOR}
        self.hold(Mode.CHARGE)
        self.second()
        self.assertEqual({500, 501}, set(self.deadline.held))


class TestOverprovision(ChargingCase):
    def test_on_top(self):
        self.hold(Mode.OVERPROVISION)
        for _ in range(5):
            self.second(guest=0.5, main=0.1)
        self.assertEqual((10_000, 20_000), self.held(101))
        self.assertEqual((3_000, 20_000), self.held(MAIN))
        self.assertEqual(670, self.enforcer.admitted_mcpu())
        self.assertEqual(670, sum(self.enforcer.held_mcpu().values()))

    def test_what_does_not_fit_is_reported_and_the_guest_keeps_its_own(self):
        self.hold(Mode.OVERPROVISION, 16_000)
        self.enforcer.hold(
            fakes.domain(2), reservation.Reservation(20_000, 20_000)
        )
        (news,) = self.second()
        self.assertEqual(errors.Code.DOES_NOT_FIT, news.refusal.code)
        self.assertTrue(news.eventful)
        self.assertEqual((16_000, 20_000), self.held(101))
        self.assertIsNone(self.held(MAIN))
        self.assertEqual([], self.second())
        self.enforcer.release(fakes.domain(2))
        self.charging._accounts[self.domain.uuid].retry_s = 0
        (news,) = self.second()
        self.assertIsNone(news.refusal)
        self.assertTrue(news.eventful)
        self.assertEqual((400, 20_000), self.held(MAIN))

    def test_growth_that_does_not_fit_leaves_what_there_is(self):
        self.hold(Mode.OVERPROVISION, 16_000)
        self.second()
        self.enforcer.hold(
            fakes.domain(2), reservation.Reservation(19_000, 20_000)
        )
        (news,) = self.second(main=0.1)
        self.assertEqual(errors.Code.DOES_NOT_FIT, news.io.code)
        self.assertEqual((400, 20_000), self.held(MAIN))
        self.assertEqual(2, news.io.threads)


class TestCfs(ChargingCase):
    backend = CFS

    def test_i_o_threads_are_held_by_deadline(self):
        self.hold(Mode.CHARGE)
        for _ in range(20):
            self.second(guest=self.held(101, self.cfs)[0] / 20_000, main=0.1)
        self.assertAlmostEqual(8_000, self.held(101, self.cfs)[0], delta=60)
        self.assertEqual((3_000, 20_000), self.held(MAIN))
        # A quota is no claim; these are.
        self.assertEqual(170, self.enforcer.admitted_mcpu())
        self.assertEqual(170, sum(self.enforcer.held_mcpu().values()))


class TestNone(ChargingCase):
    def test_left_alone(self):
        self.hold(Mode.NONE)
        self.assertEqual([None], [one.io for one in self.second(main=0.3)])
        self.assertEqual([], self.second(main=0.3))
        self.assertEqual({101}, set(self.deadline.held))

    def test_without_a_reservation(self):
        self.charging.set_mode(self.domain, Mode.CHARGE)
        self.assertEqual([], self.second(main=0.3))
        self.assertEqual({}, self.deadline.held)
