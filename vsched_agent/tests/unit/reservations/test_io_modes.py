# SPDX-License-Identifier: Apache-2.0

"""``auto`` beside the other ways of charging I/O, and in place of them."""

from fractions import Fraction

import hypothesis
from hypothesis import strategies as st

from vsched_agent.reservations import applied
from vsched_agent.tests import charging_host
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
Code = errors.Code
Mode = extra_specs.IoCharging
UNCLAIMED = applied.IoRoom.UNCLAIMED


class TestSwitched(charging_host.AutoCase):
    def test_to_all_modes_and_back(self):
        for mode in (Mode.CHARGE, Mode.OVERPROVISION, Mode.NONE):
            self.hold(1, 10_000, mode)
            for _ in range(20):
                self.second(guest=0.4, vm1=0.1)
            if mode is Mode.CHARGE:
                self.assertLess(self.guest_us(1), 10_000)
            self.hold(1, 10_000)
            self.second(guest=0.4, vm1=0.1)
            self.assertEqual(
                (10_000, 3_000), (self.guest_us(1), self.io_us(1))
            )
            self.assertEqual(500, self.claimed_mcpu())
            self.assertIs(
                UNCLAIMED, self.enforcer.io.holding(self.domains[1].uuid).room
            )
        self.hold(1, 10_000, Mode.NONE)
        self.assertIsNone(self.io_us(1))
        self.assertIsNone(self.second(vm1=0.1)[1].io)

    def test_to_a_claim_that_does_not_fit(self):
        self.hold(1, 10_000)
        self.hold(2, 22_000 // 2)
        self.hold(3, 11_000)
        self.second(vm1=0.1)
        self.assertEqual(3_000, self.io_us(1))
        self.hold(2, 14_000)
        self.hold(1, 10_000, Mode.OVERPROVISION)
        news = self.second(vm1=0.1)[1]
        self.assertEqual(Code.DOES_NOT_FIT, news.io.code)
        self.assertEqual((10_000, None), (self.guest_us(1), self.io_us(1)))


class TestOthers(charging_host.AutoCase):
    """What others have and may have does not depend on what is lent."""

    def play(self, mode):
        """Have a host with one instance of each kind; return what it does."""
        self.prepare()
        self.hold(1, 8_000, mode)
        self.hold(2, 8_000, Mode.CHARGE)
        self.hold(3, 6_000, Mode.OVERPROVISION)
        self.hold(4, 4_000, Mode.NONE)
        found = []
        for ran in (0.02, 0.1, 0.2, 0.3, 0.1, 0.05):
            for _ in range(4):
                self.second(guest=0.3, vm1=0.2, vm2=ran, vm3=ran / 2)
                found.append(
                    (
                        self.claimed_mcpu(),
                        dict(self.enforcer.held_mcpu()),
                        [self.guest_us(number) for number in (1, 2, 3, 4)],
                        [self.io_us(number) for number in (2, 3, 4)],
                    )
                )
        return found

    def test_as_if_nothing_were_lent(self):
        self.assertEqual(self.play(Mode.NONE), self.play(Mode.AUTO))

    @hypothesis.settings(
        deadline=None,
        max_examples=12,
        suppress_health_check=[hypothesis.HealthCheck.differing_executors],
    )
    @hypothesis.given(
        st.lists(
            st.tuples(
                st.integers(1, 6), st.integers(0, 14_000), st.floats(0, 0.4)
            ),
            max_size=8,
        )
    )
    def test_what_is_admitted_is_the_same(self, steps):
        """With ``auto`` in place of ``none`` just the same is admitted."""
        outcomes = []
        for replaced in (False, True):
            self.prepare()
            outcomes.append(
                [self.step(*step, replaced=replaced) for step in steps]
            )
        self.assertEqual(*outcomes)

    def step(self, number, runtime_us, ran, replaced):
        mode = (Mode.NONE, Mode.CHARGE, Mode.OVERPROVISION)[number % 3]
        if mode is Mode.NONE and replaced:
            mode = Mode.AUTO
        if runtime_us < 2_000:
            domain = self.domains.pop(number, None)
            if domain is not None:
                self.charging.set_mode(domain, Mode.NONE)
                self.enforcer.release(domain)
            admitted = None
        else:
            try:
                self.hold(number, runtime_us, mode, DEADLINE)
                admitted = True
            except errors.Refused as refusal:
                admitted = refusal.code
        self.second(**{'vm%d' % one: ran for one in self.domains})
        total = sum(
            Fraction(one.runtime_us, one.period_us)
            for one in self.deadline.held.values()
        )
        self.assertLessEqual(total, Fraction(18, 10))
        return (
            admitted,
            self.claimed_mcpu(),
            {
                one: held.runtime_us
                for one, held in self.deadline.held.items()
                if one % 100 == 1
            },
        )
