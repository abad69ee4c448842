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

"""What every channel that plugs and unplugs vCPUs must do."""

import typing as ty
import unittest
import uuid as uuids

from vsched_agent.hypervisor import channel

#: For each step; libvirt alone may take five seconds for each vCPU.
TIMEOUT_S = 20.0

# Checked as what they are mixed into, but not collected as tests.
if ty.TYPE_CHECKING:
    _TestCase = unittest.TestCase
else:
    _TestCase = object


class HotplugSuite(_TestCase):
    """Mixed into a test case that has a channel and guests."""

    channel: channel.VcpuChannel

    # What a channel's tests provide

    def boot(self, vcpus: int, hotpluggable: bool = True) -> str:
        """A guest that runs; its UUID.

        :param hotpluggable: whether all vCPUs but the first are.
        """
        raise NotImplementedError

    def assert_used(self, uuid: str, *wanted: int) -> None:
        """The guest uses these vCPUs, by another word than the channel's.
        """
        raise NotImplementedError

    # The tests

    def set_online(self, uuid: str, *wanted: int) -> None:
        found = self.channel.set_online(uuid, frozenset(wanted), TIMEOUT_S)
        self.assertEqual(set(wanted), found.online)
        self.assert_used(uuid, *wanted)

    def test_what_no_guest_can_do(self):
        uuid = self.boot(2)
        for wanted in ((), (1,), (0, 1, 2)):
            failure = self.assertRaises(
                channel.ChannelFailed, self.channel.set_online, uuid,
                frozenset(wanted), TIMEOUT_S)
            self.assertTrue(failure.undone)
            self.assert_used(uuid, 0, 1)

    def test_one_whose_vcpus_stay(self):
        uuid = self.boot(2, hotpluggable=False)
        problem = self.assertRaises(
            channel.ChannelFailed, self.channel.ask, uuid, TIMEOUT_S)
        self.assertIn('hotpluggable', str(problem))

    def test_nobody_there(self):
        uuid = str(uuids.uuid4())
        self.assertRaises(channel.ChannelFailed, self.channel.ask, uuid, 1.0)
        self.assertEqual({}, self.channel.yields([uuid]))
