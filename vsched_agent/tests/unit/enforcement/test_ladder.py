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

from oslo_config import cfg
from oslotest import base

from vsched_agent.conf import enforcement
from vsched_agent.enforcement import ladder
from vsched_agent.tests import fakes
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


class TestLadder(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.deadline = fakes.FakeBackend(DEADLINE)
        self.cfs = fakes.FakeBackend(CFS)
        self.ladder = ladder.Ladder(
            backends=[self.deadline, self.cfs], clock=lambda: self.now)

    def choose(self, *args, **kwargs):
        return self.ladder.choose(
            reservation.Reservation(*args, **kwargs), tick_us=4_000)

    def test_the_first_that_can(self):
        self.assertIs(self.deadline, self.choose(6_000, 20_000).backend)
        self.deadline.usable = False
        self.now += 100
        choice = self.choose(6_000, 20_000)
        self.assertIs(self.cfs, choice.backend)
        self.assertIn('deadline: the test says so', choice.reasons)

    def test_the_one_that_is_named_or_none(self):
        self.assertIs(self.cfs, self.choose(
            6_000, 20_000, backend=CFS).backend)
        self.cfs.usable = False
        self.now += 100
        choice = self.choose(6_000, 20_000, backend=CFS)
        self.assertIsNone(choice.backend)
        self.assertEqual(('cfs: the test says so',), choice.reasons)

    def test_what_a_backend_can_not_express(self):
        # 2 ms in a second would owe 2 s after one tick of 4 ms.
        choice = self.choose(2_000, 1_000_000)
        self.assertIs(self.cfs, choice.backend)
        self.assertIn('could owe', choice.reasons[0])
        self.assertIsNone(self.choose(
            6_000, 20_000, reservation.Mode.WORK_CONSERVING,
            CFS).backend)

    def test_a_backend_this_host_type_does_not_have(self):
        self.assertIsNone(self.choose(
            6_000, 20_000, backend=reservation.Backend.RTDS).backend)

    def test_hosts_are_asked_once_a_minute(self):
        self.ladder.support(DEADLINE)
        self.deadline.usable = False
        self.now += 59
        self.assertTrue(self.ladder.support(DEADLINE).usable)
        self.now += 1
        self.assertFalse(self.ladder.support(DEADLINE).usable)

    def test_the_operator_orders_them(self):
        conf = cfg.ConfigOpts()
        enforcement.register_opts(conf)
        conf([])
        self.assertEqual([DEADLINE, CFS], list(ladder.Ladder(conf).backends))
        conf.set_override('backends', ['cfs'], 'enforcement')
        self.assertEqual([CFS], list(ladder.Ladder(conf).backends))
        self.assertRaises(
            ValueError, conf.set_override, 'backends', ['magic'],
            'enforcement')
