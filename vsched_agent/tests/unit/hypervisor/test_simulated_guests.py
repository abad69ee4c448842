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

from oslotest import base

from vsched_agent.hypervisor import channel
from vsched_agent.hypervisor import simulated_guests
from vsched_agent.tests import channel_suite
from vsched_agent.tests import hotplug_suite


class SuiteTest(channel_suite.ChannelSuite, base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.channel = simulated_guests.SimulatedGuests()
        self.count = 0

    def boot(self, vcpus):
        self.count += 1
        self.channel.boot('guest-%d' % self.count, vcpus)
        return 'guest-%d' % self.count

    def hang(self, uuid):
        self.channel.mute.add(uuid)

    def come_back(self, uuid):
        self.channel.mute.remove(uuid)

    def ignore(self, uuid):
        self.channel.ignoring.add(uuid)

    def write_progress(self, uuid, text):
        self.channel.set_progress(uuid, channel_suite.PATH, int(text))

    # What only the simulated one shows

    def test_the_highest_go_first_and_come_last(self):
        uuid = self.boot(4)
        self.set_online(uuid, 0, 1)
        self.set_online(uuid, 0, 1, 2, 3)
        self.assertEqual([[3, 2], [2, 3]], [
            list(changes) for _, changes in self.channel.told])

    def test_nothing_is_told_when_nothing_changes(self):
        uuid = self.boot(2)
        self.set_online(uuid, 0, 1)
        self.assertEqual([], self.channel.told)

    def test_a_guest_that_goes_mute_half_way(self):
        uuid = self.boot(2)
        self.channel.ignoring.add(uuid)
        tell = self.channel.tell

        def tell_and_die(*arguments):
            tell(*arguments)
            self.channel.mute.add(uuid)

        self.channel.tell = tell_and_die
        failure = self.assertRaises(
            channel.GuestMute, self.channel.set_online, uuid,
            frozenset({0}), 1.0)
        self.assertFalse(failure.undone)

    def test_yields(self):
        uuid = self.boot(1)
        self.channel.set_yields(uuid, {0: 5})
        self.assertEqual({uuid: {0: 5}}, self.channel.yields([uuid]))


class PlugsTest(hotplug_suite.HotplugSuite, base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.guests = simulated_guests.SimulatedGuests()
        self.channel = simulated_guests.SimulatedPlugs(self.guests)
        self.count = 0

    def boot(self, vcpus, hotpluggable=True):
        self.count += 1
        uuid = 'guest-%d' % self.count
        self.guests.boot(uuid, vcpus)
        if hotpluggable:
            self.channel.declare(uuid, vcpus)
        return uuid

    def assert_used(self, uuid, *wanted):
        self.assertEqual(set(wanted), self.guests.online(uuid))

    def test_a_guest_that_does_not_let_go(self):
        uuid = self.boot(2)
        self.channel.clinging.add(uuid)
        failure = self.assertRaises(
            channel.ChannelFailed, self.channel.set_online, uuid,
            frozenset({0}), 0.5)
        self.assertTrue(failure.undone)
        self.assert_used(uuid, 0, 1)

    def test_down_and_up_more_than_once(self):
        uuid = self.boot(3)
        found = self.channel.ask(uuid, hotplug_suite.TIMEOUT_S)
        self.assertEqual(({0, 1, 2}, set(), {0}, set()), (
            found.online, found.offline, found.fixed, found.unplugged))
        for wanted in ((0, 1), (0,), (0,), (0, 1, 2), (0,), (0, 1, 2)):
            self.set_online(uuid, *wanted)
        found = self.channel.ask(uuid, hotplug_suite.TIMEOUT_S)
        self.assertEqual(({0, 1, 2}, set()),
                         (found.online, found.unplugged))
