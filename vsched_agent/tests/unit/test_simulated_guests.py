# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from vsched_agent.hypervisor import vcpu_channel
from vsched_agent.tests import channel_suite
from vsched_agent.tests import simulated_guests


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
        self.assertEqual(
            [[3, 2], [2, 3]],
            [list(changes) for _, changes in self.channel.told],
        )

    def test_nothing_is_told_when_nothing_changes(self):
        uuid = self.boot(2)
        self.set_online(uuid, 0, 1)
        self.assertEqual([], self.channel.told)

    def test_a_guest_that_goes_mute_half_way(self):
        uuid = self.boot(2)
        self.channel.ignoring.add(uuid)
        tell = self.channel.set_vcpus

        def tell_and_die(*arguments):
            tell(*arguments)
            self.channel.mute.add(uuid)

        self.channel.set_vcpus = tell_and_die
        failure = self.assertRaises(
            vcpu_channel.GuestAgentUnavailable,
            self.channel.set_online,
            uuid,
            frozenset({0}),
            1.0,
        )
        self.assertFalse(failure.undone)

    def test_yields(self):
        uuid = self.boot(1)
        self.channel.set_yields(uuid, {0: 5})
        self.assertEqual({uuid: {0: 5}}, self.channel.yields([uuid]))
