# SPDX-License-Identifier: Apache-2.0

import os

from oslotest import base

from vsched_agent.tests import guest_calls

_ANSWER = """12.34 5.00
cpu  10 0 20 300 0 0 1 %d 0 0
cpu0 10 0 20 300 0 0 1 700 0 0
"""


class TestSteal(base.BaseTestCase):
    def test_uptime_and_steal_time_in_seconds(self):
        ticks = os.sysconf('SC_CLK_TCK')

        class Command:
            def __init__(self, domain, words, timeout_s):
                pass

            def wait(self, timeout_s):
                return _ANSWER % (7 * ticks)

        self.patch(guest_calls.commands, 'GuestCommand', Command)
        self.assertEqual((12.34, 7.0), guest_calls.steal(None))
