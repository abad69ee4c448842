# SPDX-License-Identifier: Apache-2.0

import base64

from oslotest import base

from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.hypervisor import vcpu_channel


def encoded(text):
    return {'buf-b64': base64.b64encode(text.encode()).decode()}


class ParseTest(base.BaseTestCase):
    def test_vcpus(self):
        self.assertEqual(
            vcpu_channel.GuestVcpus(
                frozenset({0, 2}), frozenset({1}), frozenset({0})
            ),
            guest_agent.parse_vcpus(
                [
                    {'online': True, 'can-offline': False, 'logical-id': 0},
                    {'online': False, 'can-offline': True, 'logical-id': 1},
                    {'online': True, 'can-offline': True, 'logical-id': 2},
                ]
            ),
        )

    def test_answers_that_are_none(self):
        for answer in (None, 7, [7], [{}], [{'logical-id': 'x'}]):
            self.assertRaises(
                vcpu_channel.ChannelFailed, guest_agent.parse_vcpus, answer
            )

    def test_progress(self):
        self.assertEqual(42, guest_agent.parse_progress(encoded('42\n')))
        for answer in (
            None,
            {},
            encoded(''),
            encoded('-1'),
            encoded('x'),
            encoded('9' * 21),
            encoded('\u0664'),
        ):
            self.assertIsNone(guest_agent.parse_progress(answer), answer)

    def test_yields(self):
        self.assertEqual(
            {0: 7, 12: 8},
            guest_agent.parse_yields(
                {
                    'vcpu.current': 2,
                    'vcpu.0.directed_yield_attempted.sum': 7,
                    'vcpu.12.directed_yield_attempted.sum': 8,
                    'vcpu.0.directed_yield_successful.sum': 3,
                    'vcpu.0.time': 5,
                }
            ),
        )


class NotStartedTest(base.BaseTestCase):
    def test_is_mute(self):
        one = guest_agent.GuestAgentChannel()
        self.assertRaises(
            vcpu_channel.GuestAgentUnavailable, one.get_vcpus, 'x', 1.0
        )
        self.assertEqual({}, one.yields(['x']))
        one.stop()
