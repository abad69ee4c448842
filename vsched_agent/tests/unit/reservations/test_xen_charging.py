# SPDX-License-Identifier: Apache-2.0

"""What the first domain does for an instance comes out of its budget."""

import itertools
import tempfile

import fixtures
from oslotest import base

from vsched_agent.accounting import base as readings
from vsched_agent.enforcement.xen import capacity
from vsched_agent.enforcement.xen import credit
from vsched_agent.enforcement.xen import rtds
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.reservations import enforcer
from vsched_agent.reservations import io_charging
from vsched_agent.state import directory
from vsched_agent.tests import fake_dom0
from vsched_agent.tests import fake_xl
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import reservation

Mode = extra_specs.IoCharging
Role = readings.Role


class ChargingCase(base.BaseTestCase):
    """Two CPUs and one instance of one vCPU."""

    scheduler = 'rtds'

    def make_backend(self):
        return rtds.RtdsBackend(scheduler.Scheduler(clock=lambda: self.now))

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.xl = self.useFixture(fake_xl.FakeXl(scheduler=self.scheduler))
        self.now = 0.0
        self.useFixture(
            fixtures.MockPatchObject(
                io_charging.time, 'monotonic', lambda: self.now
            )
        )
        state = directory.open_state(folder.name)
        self.addCleanup(state.close)
        backend = self.make_backend()
        found = capacity.XenCapacity([backend])
        self.enforcer = enforcer.Enforcer(
            {backend.name: backend},
            lambda name: backend.supports(),
            found,
            state.journal,
            replacing=found.replacing,
        )
        self.charging = io_charging.Charging(
            io_charging.Settings(tick_us=4000), self.enforcer
        )
        self.xl.start(1)
        self.domain = fake_dom0.domain(
            '00000000-0000-4000-8000-000000000001', 1
        )
        self.name = backend.name

    def hold(self, mode):
        self.enforcer.hold(
            self.domain,
            reservation.Reservation(50_000, 100_000, backend=self.name),
            charged=self.charging.set_mode(self.domain, mode),
        )

    def seconds(self, count, guest_us, direct_us, shared_us):
        """Passes of one second each; returns what is reported last."""
        last = None
        for _ in range(count):
            self.now += 1
            threads = readings.Reading(
                self.domain.uuid,
                0,
                10**9,
                (
                    readings.ThreadUse(
                        self.domain.vcpus[0].tid,
                        Role.VCPU,
                        guest_us * 1000,
                        0,
                        0,
                    ),
                    readings.ThreadUse(
                        40, Role.VHOST, direct_us * 1000, 500_000_000, 9
                    ),
                ),
                direct_us * 1000,
                vcpus_are_threads=False,
            )
            for change in self.charging.adjust(
                [self.domain],
                [
                    messages.UsageSample(
                        self.domain.uuid,
                        1.0,
                        1_000_000,
                        guest_us,
                        0,
                        direct_us=direct_us,
                        shared_us=shared_us,
                    )
                ],
                {self.domain.uuid: threads},
            ):
                last = change
        return last


class RtdsTest(ChargingCase):
    def budget_us(self):
        return self.xl.vcpus[1, 0][1]

    def test_the_budget_is_lowered_and_given_back(self):
        self.hold(Mode.CHARGE)
        self.assertEqual(50_000, self.budget_us())
        change = self.seconds(60, 300_000, 60_000, 40_000)
        # 500 mcpu without 100.
        self.assertAlmostEqual(40_000, self.budget_us(), delta=2_500)
        self.assertIsNone(change.refusal)
        self.assertEqual(
            ('charge', 0, None),
            (change.io.charging, change.io.threads, change.io.code),
        )
        self.assertAlmostEqual(100, change.io.charged_mcpu, delta=12)
        self.seconds(60, 300_000, 0, 0)
        self.assertEqual(50_000, self.budget_us())

    def test_small_changes_start_no_process(self):
        self.hold(Mode.CHARGE)
        self.seconds(30, 300_000, 60_000, 40_000)
        self.xl.commands.clear()
        for change_us in (7_000, -7_000, 7_000, -7_000):
            self.seconds(1, 300_000, 60_000 + change_us, 40_000)
        self.assertEqual([], [one for one in self.xl.commands if '-d' in one])

    def test_what_others_have_meanwhile_is_tried_rarely(self):
        self.hold(Mode.CHARGE)
        self.seconds(60, 300_000, 60_000, 40_000)
        charged_us = self.budget_us()
        # The first domain has 400 mcpu.
        for domid, budget_us in ((2, 10_000), (3, 2_000)):
            self.xl.start(domid)
            self.xl.vcpus[domid, 0] = [10_000, budget_us, True]
        apply = self.enforcer.charges.apply
        tried_s = []
        self.useFixture(
            fixtures.MockPatchObject(
                self.enforcer.charges,
                'apply',
                lambda *args: (tried_s.append(self.now), apply(*args)),
            )
        )
        change = self.seconds(30, 300_000, 0, 0)
        self.assertEqual(charged_us, self.budget_us())
        self.assertEqual('vsched.reservation.kernel_refused', change.io.code)
        refused_s = [one for one in tried_s if one >= tried_s[-1] - 20]
        self.assertGreater(len(refused_s), 1)
        self.assertEqual(
            [io_charging.RETRY_S] * (len(refused_s) - 1),
            [
                after - before
                for before, after in itertools.pairwise(refused_s)
            ],
            tried_s,
        )
        # More work is charged at once.
        self.seconds(3, 300_000, 160_000, 40_000)
        self.assertLess(self.budget_us(), charged_us)
        self.xl.end(2)
        self.seconds(40, 300_000, 0, 0)
        self.assertEqual(50_000, self.budget_us())

    def test_others_are_not_charged(self):
        for mode in (Mode.AUTO, Mode.OVERPROVISION, Mode.NONE):
            self.hold(mode)
            change = self.seconds(20, 300_000, 60_000, 40_000)
            self.assertEqual(50_000, self.budget_us(), mode)
            # This kernel cannot reserve CPU time for its threads: no failure.
            if change is not None:
                self.assertIsNone(change.refusal, mode)
                self.assertFalse(change.eventful)


class Credit2Test(ChargingCase):
    scheduler = 'credit2'

    def make_backend(self):
        return credit.CreditBackend(
            reservation.Backend.CREDIT2,
            scheduler.Scheduler(clock=lambda: self.now),
        )

    def test_weight_and_cap_are_lowered(self):
        self.hold(Mode.CHARGE)
        self.assertEqual([500, 50], list(self.xl.domains[1]))
        self.seconds(60, 300_000, 60_000, 40_000)
        weight, cap = self.xl.domains[1]
        self.assertAlmostEqual(400, weight, delta=25)
        self.assertAlmostEqual(40, cap, delta=3)
