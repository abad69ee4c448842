# SPDX-License-Identifier: Apache-2.0

from fractions import Fraction
import random


from vsched_agent.enforcement import base as enforcement
from vsched_agent.reservations import admission
from vsched_agent.reservations import applied
from vsched_agent.reservations import capacity_ledger
from vsched_agent.reservations import io_threads
from vsched_agent.tests import fakes
from vsched_agent.tests import journals
from vsched_lib.contract import errors
from vsched_lib.model import admission as schedulability
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS
INSIDE, ON_TOP = applied.IoRoom.INSIDE, applied.IoRoom.ON_TOP


class TestAdmission(journals.JournalCase):
    def setUp(self):
        super().setUp()
        self.io = io_threads.IoThreads(
            fakes.FakeBackend(DEADLINE), self.journal
        )
        self.holdings = {}
        capacity = fakes.FakeCapacity(Fraction(18, 10))
        self.ledger = capacity_ledger.CapacityLedger(
            capacity, self.holdings, self.io
        )
        self.checker = admission.AdmissionChecker(
            {},
            lambda name: enforcement.Support(True),
            capacity,
            admission.NoMeasurements(),
            4000,
            self.ledger,
            schedulability.Test.BANDWIDTH,
        )

    def hold(self, uuid, runtime_us, backend=DEADLINE, guest_us=None):
        held = applied.Holding(
            backend,
            reservation.Reservation(runtime_us, 20_000),
            1,
            (enforcement.Target(0, 1),),
        )
        self.holdings[uuid] = held.lowered(guest_us or runtime_us)
        self.ledger.update(uuid)

    def hold_io(self, uuid, runtime_us, room):
        self.io.apply(
            uuid,
            applied.IoHolding(
                1,
                (
                    (
                        enforcement.Target(0, 2),
                        reservation.Reservation(runtime_us, 20_000),
                    ),
                ),
                room,
            ),
        )
        self.ledger.update(uuid)

    def test_io_inside_the_reservation_is_no_claim(self):
        self.hold('a', 10_000)
        self.hold_io('a', 2_000, INSIDE)
        self.assertEqual(Fraction(1, 2), self.ledger.claimed())
        self.hold_io('a', 2_000, ON_TOP)
        self.assertEqual(Fraction(6, 10), self.ledger.claimed())

    def test_io_beside_a_quota_is_a_claim(self):
        self.hold('a', 10_000, CFS)
        self.assertEqual(0, self.ledger.claimed())
        self.hold_io('a', 2_000, INSIDE)
        self.assertEqual(Fraction(1, 10), self.ledger.claimed())

    def test_surplus_uses_spare_capacity_and_is_reclaimable(self):
        self.hold('a', 10_000)
        self.hold_io('a', 2_000, INSIDE)
        self.hold('b', 20_000)
        self.assertEqual(Fraction(3, 10), self.ledger.spare('a'))
        self.assertEqual(Fraction(2, 10), self.ledger.spare('b'))
        claim = applied.claim(
            reservation.Reservation(5_000, 20_000), (enforcement.Target(0, 3),)
        )
        self.assertEqual(['a'], self.ledger.reclaimable('c', [claim]))
        self.hold('a', 10_000, guest_us=8_000)
        self.assertEqual([], self.ledger.reclaimable('c', [claim]))
        self.assertEqual(Fraction(3, 10), self.ledger.spare('b'))

    def test_saturated(self):
        self.hold('a', 10_000)
        self.hold_io('a', 2_000, INSIDE)
        held, io = self.holdings['a'], self.io.holding('a')
        self.assertFalse(self.ledger.saturated('a', held.inside(io), io))
        self.assertEqual(Fraction(13, 10), self.ledger.spare('a'))
        self.assertTrue(self.ledger.saturated('a', held, io))
        self.assertEqual(0, self.ledger.spare('a'))

    def test_what_does_not_fit(self):
        self.hold('a', 20_000)
        claims = [
            applied.claim(
                reservation.Reservation(20_000, 20_000),
                (enforcement.Target(0, 3),),
            )
        ]
        refusal = self.assertRaises(
            errors.Refused, self.checker.admit, 'b', [], claims
        )
        self.assertEqual(
            (errors.Code.DOES_NOT_FIT, 1000, 2000),
            (
                refusal.code,
                refusal.figures['asked_mcpu'],
                refusal.figures['needed_mcpu'],
            ),
        )
        self.checker.admit('a', [], claims)

    def test_updated_sums_equal_recomputed_ones(self):
        chance = random.Random(7)
        for _ in range(200):
            uuid = chance.choice('abcdef')
            what = chance.randrange(4)
            if what == 0 and uuid in self.holdings:
                del self.holdings[uuid]
                self.io.drop(uuid)
                self.ledger.update(uuid)
            elif what == 1 and uuid in self.holdings:
                self.hold_io(
                    uuid,
                    chance.randint(100, 900),
                    chance.choice(list(applied.IoRoom)),
                )
            else:
                runtime_us = chance.randint(1_000, 5_000)
                self.hold(
                    uuid,
                    runtime_us,
                    chance.choice([DEADLINE, CFS]),
                    chance.randint(500, runtime_us),
                )
            kept = self.ledger.spare('')
            self.ledger.recompute()
            self.assertEqual(self.ledger.spare(''), kept)
