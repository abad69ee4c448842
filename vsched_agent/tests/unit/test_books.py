# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

from fractions import Fraction
import os
import random
import tempfile

from oslotest import base

from vsched_agent import books
from vsched_agent.enforcement import base as enforcement
from vsched_agent import in_force
from vsched_agent import io_threads
from vsched_agent import journal
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import admission
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


class TestBooks(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.journal = journal.Journal(
            os.path.join(folder.name, 'agent.sqlite'))
        self.addCleanup(self.journal.close)
        self.io = io_threads.IoThreads(
            fakes.FakeBackend(DEADLINE), self.journal)
        self.holdings = {}
        self.books = books.Books(
            fakes.FakeCapacity(Fraction(18, 10)), admission.Test.BANDWIDTH,
            self.holdings, self.io)

    def hold(self, uuid, runtime_us, backend=DEADLINE, guest_us=None):
        held = in_force.Holding(
            backend, reservation.Reservation(runtime_us, 20_000), 1,
            (enforcement.Target(0, 1),))
        self.holdings[uuid] = held.lowered(guest_us or runtime_us)
        self.books.changed(uuid)

    def hold_io(self, uuid, runtime_us, on_top):
        self.io.apply(uuid, in_force.IoHolding(1, (
            (enforcement.Target(0, 2),
             reservation.Reservation(runtime_us, 20_000)),), on_top))
        self.books.changed(uuid)

    def test_what_is_inside_is_no_claim(self):
        self.hold('a', 10_000)
        self.hold_io('a', 2_000, on_top=False)
        self.assertEqual(Fraction(1, 2), self.books.claimed())
        self.hold_io('a', 2_000, on_top=True)
        self.assertEqual(Fraction(6, 10), self.books.claimed())

    def test_inside_of_a_quota_there_is_no_room(self):
        self.hold('a', 10_000, CFS)
        self.assertEqual(0, self.books.claimed())
        self.hold_io('a', 2_000, on_top=False)
        self.assertEqual(Fraction(1, 10), self.books.claimed())

    def test_surplus_takes_spare_room_and_is_in_the_way(self):
        self.hold('a', 10_000)
        self.hold_io('a', 2_000, on_top=False)
        self.hold('b', 20_000)
        self.assertEqual(Fraction(3, 10), self.books.spare('a'))
        self.assertEqual(Fraction(2, 10), self.books.spare('b'))
        claim = in_force.claim(reservation.Reservation(5_000, 20_000),
                               (enforcement.Target(0, 3),))
        self.assertEqual(['a'], self.books.in_the_way('c', [claim]))
        self.hold('a', 10_000, guest_us=8_000)
        self.assertEqual([], self.books.in_the_way('c', [claim]))
        self.assertEqual(Fraction(3, 10), self.books.spare('b'))

    def test_crowded(self):
        self.hold('a', 10_000)
        self.hold_io('a', 2_000, on_top=False)
        held, io = self.holdings['a'], self.io.holding('a')
        self.assertFalse(self.books.crowded('a', held.inside(io), io))
        self.assertEqual(Fraction(13, 10), self.books.spare('a'))
        self.assertTrue(self.books.crowded('a', held, io))
        self.assertEqual(0, self.books.spare('a'))

    def test_what_does_not_fit(self):
        self.hold('a', 20_000)
        claims = [in_force.claim(reservation.Reservation(
            20_000, 20_000), (enforcement.Target(0, 3),))]
        refusal = self.assertRaises(
            errors.Refused, self.books.admit, 'b', [], claims)
        self.assertEqual(
            (errors.Code.DOES_NOT_FIT, 1000, 2000),
            (refusal.code, refusal.figures['asked_mcpu'],
             refusal.figures['needed_mcpu']))
        self.books.admit('a', [], claims)

    def test_kept_sums_are_those_added_up(self):
        chance = random.Random(7)
        for _ in range(200):
            uuid = chance.choice('abcdef')
            what = chance.randrange(4)
            if what == 0 and uuid in self.holdings:
                del self.holdings[uuid]
                self.io.drop(uuid)
                self.books.changed(uuid)
            elif what == 1 and uuid in self.holdings:
                self.hold_io(uuid, chance.randint(100, 900),
                             chance.random() < 0.5)
            else:
                runtime_us = chance.randint(1_000, 5_000)
                self.hold(uuid, runtime_us,
                          chance.choice([DEADLINE, CFS]),
                          chance.randint(500, runtime_us))
            kept = self.books.spare('')
            self.books.add_up()
            self.assertEqual(self.books.spare(''), kept)
