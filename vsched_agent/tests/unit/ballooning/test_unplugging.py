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

import dataclasses

from oslotest import base as test_base

from vsched_agent.ballooning import base
from vsched_agent.hypervisor import simulated_guests
from vsched_agent.tests import ballooning_host
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.model import reservation

#: Until it is clear that a guest does not merely boot, in seconds.
PATIENCE_S = 60


class Host(ballooning_host.Host):
    """Shows only the threads of vCPUs that are plugged in."""

    def pass_time(self, seconds=1):
        for _ in range(seconds):
            for uuid, whole in self.whole.items():
                plugged = self.guests.unplugging.ask(uuid, 1).online
                self.domains[uuid] = dataclasses.replace(
                    self.domains[uuid], vcpus=tuple(
                        vcpu for vcpu in whole.vcpus
                        if vcpu.index in plugged))
                # Alone on a CPU nobody waits.
                if len(plugged) < len(whole.vcpus):
                    self.busy[uuid] = (1.0, 0.0)
                elif self.busy[uuid] == (1.0, 0.0):
                    self.busy[uuid] = (0.25, 0.75)
            super().pass_time()


class UnpluggingTest(test_base.BaseTestCase):
    """Guests without an agent, whose vCPUs can be unplugged."""

    def setUp(self):
        super().setUp()
        self.guests = simulated_guests.SimulatedGuests()
        self.plugs = simulated_guests.SimulatedPlugs(self.guests)
        self.guests.unplugging = self.plugs
        self.host = self.make()
        self.one, self.two = (
            self.host.add(number, promise=reservation.Reservation(
                4000, 20000)) for number in (1, 2))
        for uuid in (self.one, self.two):
            self.declare(uuid)
            self.guests.mute.add(uuid)

    def make(self, unplug=True, **fields):
        host = Host(guests=self.guests, settings=base.Settings(
            guest_timeout_s=0.3, unplug=unplug), **fields)
        host.whole = {}
        self.addCleanup(host.controller.stop, 0.1)
        return host

    def declare(self, uuid):
        self.plugs.declare(uuid, 4)
        self.host.whole[uuid] = self.host.domains[uuid]

    def assert_full(self):
        for uuid in (self.one, self.two):
            self.assertEqual({0, 1, 2, 3}, self.plugs.ask(uuid, 1).online)
            self.assertNotIn(uuid, self.host.memory.rows)

    def test_not_while_it_may_be_booting(self):
        self.host.pass_time(15)
        self.assert_full()
        self.assertEqual([], self.host.codes())

    def test_not_unless_that_is_wanted(self):
        host = self.make(unplug=False)
        host.domains, host.wishes = self.host.domains, self.host.wishes
        host.busy, host.whole = self.host.busy, self.host.whole
        host.pass_time(2 * PATIENCE_S)
        self.assert_full()
        self.assertIs(False, host.stands(self.one).guest_answers)

    def test_taken_watched_and_given_back(self):
        self.host.pass_time(PATIENCE_S)
        for uuid in (self.one, self.two):
            self.assertEqual({0}, self.plugs.ask(uuid, 1).online)
            self.assertEqual((0,), self.host.hands.shapes[uuid])
            self.assertTrue(self.host.memory.rows[uuid]['unplugged'])
            stands = self.host.stands(uuid)
            self.assertEqual((4, 1), (stands.vcpus, stands.online_vcpus))
        self.assertNotIn('returned', self.host.codes())
        self.host.pass_time(15)
        self.assertEqual(2, self.host.codes().count('kept'))
        for uuid in (self.one, self.two):
            self.host.wishes[uuid] = base.Wishes()
        self.host.pass_time(2)
        self.assert_full()
        self.assertEqual(4, self.host.stands(self.one).online_vcpus)

    def test_the_guest_goes_first(self):
        self.guests.mute.clear()
        self.host.pass_time(5)
        self.assertEqual({0}, self.guests.online(self.one))
        self.assertEqual({0, 1, 2, 3}, self.plugs.ask(self.one, 1).online)
        self.assertFalse(self.host.memory.rows[self.one]['unplugged'])

    def test_one_that_does_not_let_go(self):
        self.plugs.clinging.add(self.one)
        self.host.pass_time(PATIENCE_S)
        self.assertIn(errors.Code.BALLOON_FAILED, [
            code for code, uuid, *_ in self.host.events
            if uuid == self.one])
        self.assertEqual({0, 1, 2, 3}, self.plugs.ask(self.one, 1).online)
        self.assertNotIn(self.one, self.host.memory.rows)

    def test_by_the_next_agent_whoever_answers_then(self):
        self.host.pass_time(PATIENCE_S)
        self.assertEqual({0}, self.plugs.ask(self.one, 1).online)
        self.guests.mute.clear()
        heir = self.make(memory=self.host.memory)
        heir.domains, heir.wishes = self.host.domains, self.host.wishes
        heir.whole = self.host.whole
        heir.busy = dict.fromkeys(self.host.busy, (0.0, 0.0))
        heir.controller.recover()
        heir.pass_time(2)
        self.assert_full()

    def test_as_ordered(self):
        for uuid in (self.one, self.two):
            self.host.busy[uuid] = (0.1, 0.0)
        self.host.pass_time(PATIENCE_S)
        self.host.controller.order([
            balloons.BalloonOrder(self.one, 1, 3)])
        self.host.settle()
        self.host.pass_time(5)
        self.assertEqual({0, 1, 2}, self.plugs.ask(self.one, 1).online)
        self.assertEqual(balloons.OrderState.APPLIED,
                         self.host.stands(self.one).order_state)
        self.host.controller.order([
            balloons.BalloonOrder(self.one, 2, 2)])
        self.host.settle()
        self.host.pass_time(1)
        self.assertEqual({0, 1}, self.plugs.ask(self.one, 1).online)
        self.host.controller.order([])
        self.host.settle()
        self.host.pass_time(2)
        self.assert_full()

    def test_another_vcpu_is_plugged_in_meanwhile(self):
        self.host.pass_time(PATIENCE_S)
        self.plugs.tell(self.one, {2: True}, 1)
        # It runs, so it strays.
        self.host.pass_time(6)
        self.assertEqual({0, 1, 2, 3}, self.plugs.ask(self.one, 1).online)
