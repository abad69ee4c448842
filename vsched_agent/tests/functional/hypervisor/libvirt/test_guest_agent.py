# SPDX-License-Identifier: Apache-2.0

import time

from oslotest import base as test_base

from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.hypervisor import vcpu_channel
from vsched_agent.profiling.guest import commands
from vsched_agent.tests import channel_suite
from vsched_agent.tests import fixtures


_HANGS = b'vsched-test-hangs'


class SuiteTest(channel_suite.ChannelSuite, test_base.BaseTestCase):
    """The channel to real guests."""

    # They are emulated, on CPUs that others use as well.
    answer_s = 30.0

    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)
        self.proxy = self.useFixture(fixtures.SocketProxy())
        self.channel = guest_agent.GuestAgentChannel(self.proxy.uri)
        self.channel.start()
        self.addCleanup(self.channel.stop)
        self.guests = {}

    def boot(self, vcpus):
        guest = self.useFixture(fixtures.Guest(vcpus=vcpus))
        self.guests[guest.uuid] = guest
        self.await_answer(guest.uuid)
        return guest.uuid

    def await_answer(self, uuid):
        give_up = time.monotonic() + fixtures.BOOT_S
        while True:
            try:
                return self.channel.get_vcpus(uuid, 5.0)
            except vcpu_channel.GuestAgentUnavailable:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.2)

    def run_inside(self, uuid, script):
        commands.GuestCommand(
            self.guests[uuid].handle, ['/bin/sh', '-c', script]
        ).wait(channel_suite.TIMEOUT_S)

    def hang(self, uuid):
        # What the agent starts would stop with it; so it comes a bit later.
        # Whether the shell has ended is not asked: it may be stopped by then.
        console = self.guests[uuid].running.console
        before = console().count(_HANGS)
        commands.GuestCommand(
            self.guests[uuid].handle,
            [
                '/bin/sh',
                '-c',
                '(sleep 0.5; killall -STOP qemu-ga; echo %s >/dev/ttyS0; '
                'sleep 20; killall -CONT qemu-ga) >/dev/null 2>&1 </dev/null &'
                % _HANGS.decode(),
            ],
        )
        give_up = time.monotonic() + channel_suite.TIMEOUT_S
        while console().count(_HANGS) == before:
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.05)

    def come_back(self, uuid):
        self.await_answer(uuid)

    def ignore(self, uuid):
        # Reads as "online", and takes whatever is written to it.
        self.run_inside(
            uuid, 'mount --bind /dev/zero /sys/devices/system/cpu/cpu1/online'
        )

    def write_progress(self, uuid, text):
        self.run_inside(uuid, 'echo %s > %s' % (text, channel_suite.PATH))

    # What only real ones go through

    def test_the_daemon_goes_and_comes(self):
        uuid = self.boot(2)
        self.proxy.cut()
        self.assertRaises(
            vcpu_channel.GuestAgentUnavailable,
            self.channel.get_vcpus,
            uuid,
            1.0,
        )
        self.proxy.mend()
        self.assertEqual({0, 1}, self.await_answer(uuid).online)
        self.set_online(uuid, 0)

    def test_one_that_hangs_delays_no_other(self):
        hanging, other = self.boot(2), self.boot(2)
        self.hang(hanging)
        self.assertRaises(
            vcpu_channel.GuestAgentUnavailable,
            self.channel.get_vcpus,
            hanging,
            1.0,
        )
        self.set_online(other, 0)
        self.come_back(hanging)
