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

import base64

from oslotest import base

from vsched_agent.hypervisor import channel
from vsched_agent.hypervisor import guest_channel


def encoded(text):
    return {'buf-b64': base64.b64encode(text.encode()).decode()}


class ParseTest(base.BaseTestCase):

    def test_vcpus(self):
        self.assertEqual(
            channel.GuestVcpus(frozenset({0, 2}), frozenset({1}),
                               frozenset({0})),
            guest_channel.parse_vcpus([
                {'online': True, 'can-offline': False, 'logical-id': 0},
                {'online': False, 'can-offline': True, 'logical-id': 1},
                {'online': True, 'can-offline': True, 'logical-id': 2}]))

    def test_answers_that_are_none(self):
        for answer in (None, 7, [7], [{}], [{'logical-id': 'x'}]):
            self.assertRaises(channel.ChannelFailed,
                              guest_channel.parse_vcpus, answer)

    def test_progress(self):
        self.assertEqual(42, guest_channel.parse_progress(encoded('42\n')))
        for answer in (None, {}, encoded(''), encoded('-1'), encoded('x'),
                       encoded('9' * 21), encoded('\u0664')):
            self.assertIsNone(guest_channel.parse_progress(answer), answer)

    def test_yields(self):
        self.assertEqual({0: 7, 12: 8}, guest_channel.parse_yields({
            'vcpu.current': 2, 'vcpu.0.directed_yield_attempted.sum': 7,
            'vcpu.12.directed_yield_attempted.sum': 8,
            'vcpu.0.directed_yield_successful.sum': 3,
            'vcpu.0.time': 5}))


class NotStartedTest(base.BaseTestCase):

    def test_is_mute(self):
        one = guest_channel.GuestAgentChannel()
        self.assertRaises(channel.GuestMute, one.ask, 'x', 1.0)
        self.assertEqual({}, one.yields(['x']))
        one.stop()
