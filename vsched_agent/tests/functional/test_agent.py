# SPDX-License-Identifier: Apache-2.0

"""The agent with real guests, libvirt and kernel; the bus is in memory."""

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_suite_drift
from vsched_agent.tests.functional import agent_suite_extra_specs
from vsched_agent.tests.functional import agent_suite_reservations
from vsched_agent.tests.functional import agent_suite_restarts
from vsched_lib.contract import messages


class TestAgent(
    agent_suite_drift.DriftSuite,
    agent_suite_extra_specs.ExtraSpecSuite,
    agent_suite_reservations.ReservationSuite,
    agent_suite_restarts.RestartSuite,
    agent_case.AgentCase,
):
    """A guest that its flavor promises 60 % of a CPU, and a neighbour."""

    GUESTS = {
        'promised': {
            'load': 'burn',
            'extra_specs': {'vsched:cpu_runtime_us': '12000'},
        },
        'plain': {'load': 'burn', 'vcpus': 2},
    }

    def setUp(self):
        super().setUp()
        self.promised, self.plain = self.vms['promised'], self.vms['plain']
        # What an earlier test leaves behind is undone by now or soon.
        self.agent.await_said(
            self.promised.uuid,
            state=messages.State.APPLIED,
            enforced_runtime_us=12_000,
            enforced_backend='deadline',
        )
        self.collector.await_news(
            lambda: (
                (said := self.collector.said(self.plain.uuid)) is None
                or said.state == messages.State.RELEASED
            ),
            'release',
        )
