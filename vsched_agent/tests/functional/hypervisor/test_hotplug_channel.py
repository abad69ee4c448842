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

import os
import pathlib
import time

from oslotest import base as test_base

from vsched_agent.hypervisor import channel
from vsched_agent.hypervisor import guest_channel
from vsched_agent.hypervisor import guest_commands
from vsched_agent.tests import fixtures
from vsched_agent.tests import hotplug_suite

#: A guest under emulation takes that long to do what it is asked.
_PATIENCE_S = 60.0


class SuiteTest(hotplug_suite.HotplugSuite, test_base.BaseTestCase):
    """Real guests.

    They let go of a vCPU, but QEMU 7.2 does not say so while it emulates,
    and ends when the vCPU is to come back: what else there is to see is in
    the unit tests.
    """

    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)
        agent = guest_channel.GuestAgentChannel()
        agent.start()
        self.addCleanup(agent.stop)
        self.channel = agent.unplugging
        self.guests = {}

    def boot(self, vcpus, hotpluggable=True):
        guest = self.useFixture(fixtures.Guest(
            vcpus=vcpus, hotpluggable=hotpluggable))
        self.guests[guest.uuid] = guest.handle
        # The connection may still be on its way.
        give_up_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.channel.ask(guest.uuid, hotplug_suite.TIMEOUT_S)
            except channel.GuestMute:
                self.assertLess(time.monotonic(), give_up_s)
                time.sleep(0.2)
            except channel.ChannelFailed:
                # It answers, and that is all.
                return guest.uuid
            else:
                return guest.uuid

    def assert_used(self, uuid, *wanted):
        self.assertEqual(len(wanted), self.threads(uuid))
        text = '0' if len(wanted) == 1 else '0-%d' % (len(wanted) - 1)
        give_up_s = time.monotonic() + _PATIENCE_S
        # It takes a new one into use by itself.
        while self.used(uuid) != text:
            self.assertLess(time.monotonic(), give_up_s, self.used(uuid))
            time.sleep(0.2)

    def used(self, uuid):
        """What the guest's kernel says."""
        return guest_commands.GuestCommand(self.guests[uuid], [
            '/bin/sh', '-c', 'cat /sys/devices/system/cpu/online',
        ]).wait(hotplug_suite.TIMEOUT_S).strip()

    def threads(self, uuid):
        """How many vCPU threads there are, by the host's kernel."""
        pid = int(pathlib.Path('/run/libvirt/qemu/%s.pid' % (
            self.guests[uuid].name())).read_text())
        tasks = '/proc/%d/task' % pid
        return sum(pathlib.Path(tasks, tid, 'comm').read_text().startswith(
            'CPU ') for tid in os.listdir(tasks))
