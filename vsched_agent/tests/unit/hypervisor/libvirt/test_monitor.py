# SPDX-License-Identifier: Apache-2.0

"""Answers of QEMU."""

import ddt
from oslotest import base as test_base

from vsched_agent.hypervisor.libvirt import monitor

# As QEMU 7.2 answered.
ANSWER = (
    '{"return":[{"thread-id":14313,"props":{"core-id":0,"thread-id":0,'
    '"socket-id":0},"qom-path":"/machine/unattached/device[0]",'
    '"cpu-index":0,"target":"x86_64"},{"thread-id":14314,"props":'
    '{"core-id":0,"thread-id":0,"socket-id":1},"qom-path":'
    '"/machine/unattached/device[2]","cpu-index":1,"target":"x86_64"}],'
    '"id":"libvirt-411"}'
)


@ddt.ddt
class ParseTest(test_base.BaseTestCase):
    def test_good(self):
        self.assertEqual({0: 14313, 1: 14314}, monitor.parse_vcpus(ANSWER))

    @ddt.data(
        '',
        '{',
        '[]',
        '{"return": 3}',
        '{"return": [{}]}',
        'null',
        '{"error": {"class": "GenericError"}}',
        '{"return": [{"cpu-index": "x", "thread-id": 1}]}',
    )
    def test_bad(self, text):
        self.assertRaises(monitor.UnexpectedAnswer, monitor.parse_vcpus, text)
